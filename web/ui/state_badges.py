"""State badges: the symbol, colour and word of each state.

Each state has all three, so that colour is never the only sign.
"""

from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop


class StateBadge(NamedTuple):
    """A state's symbol and kind: success, working, warning, danger, reserved, ended or ""."""

    symbol: str
    kind: str


BADGES = {
    # leases
    "requested": StateBadge("requested", "warning"),
    "queued": StateBadge("queued", "warning"),
    "provisioning": StateBadge("provisioning", "working"),
    "active": StateBadge("active", "success"),
    "stopping": StateBadge("stopping", "working"),
    "stopped": StateBadge("stopped", ""),
    "releasing": StateBadge("releasing", "working"),
    "released": StateBadge("released", "ended"),
    "failed": StateBadge("failed", "danger"),
    # volumes
    "deleting": StateBadge("releasing", "working"),
    "deleted": StateBadge("released", "ended"),
    # invoices
    "draft": StateBadge("requested", "ended"),
    "closing": StateBadge("provisioning", "working"),
    "finalized": StateBadge("finalized", "warning"),
    "partially_paid": StateBadge("partially", "warning"),
    "paid": StateBadge("paid", "success"),
    "uncollectible": StateBadge("failed", "danger"),
    "reported": StateBadge("finalized", ""),
    "void": StateBadge("void", "ended"),
    # disputes
    "open": StateBadge("requested", "warning"),
    "withdrawn": StateBadge("void", "ended"),
    "approved": StateBadge("provisioning", "working"),
    "booked": StateBadge("paid", "success"),
    "waiting": StateBadge("queued", "warning"),
    "outdated": StateBadge("warn", "danger"),
    # payments
    "pending": StateBadge("provisioning", "working"),
    "succeeded": StateBadge("paid", "success"),
    "declined": StateBadge("failed", "danger"),
    "stuck": StateBadge("warn", "danger"),
    # nodes and GPUs
    "healthy": StateBadge("active", "success"),
    "ready": StateBadge("active", "success"),
    "cordoned": StateBadge("kept", "reserved"),
    "draining": StateBadge("stopping", "working"),
    "maintenance": StateBadge("void", "ended"),
    "unhealthy": StateBadge("failed", "danger"),
    "quarantined": StateBadge("failed", "danger"),
    "unreachable": StateBadge("warn", "warning"),
    "lost": StateBadge("failed", "danger"),
    # cluster check results
    "ok": StateBadge("active", "success"),
    "warn": StateBadge("warn", "warning"),
    "bad": StateBadge("failed", "danger"),
    "unknown": StateBadge("released", "ended"),
    # repartitions
    "planned": StateBadge("requested", "warning"),
    "configuring": StateBadge("provisioning", "working"),
    "repartitioning": StateBadge("provisioning", "working"),
    "retrying": StateBadge("warn", "warning"),
    "reopening": StateBadge("provisioning", "working"),
    "cancelling": StateBadge("stopping", "working"),
    "done": StateBadge("active", "success"),
    "cancelled": StateBadge("void", "ended"),
    # relocation plans and relocations
    "proposed": StateBadge("requested", "warning"),
    "accepted": StateBadge("requested", "working"),
    "running": StateBadge("provisioning", "working"),
    "noticed": StateBadge("requested", "working"),
    "moving": StateBadge("provisioning", "working"),
    "returning": StateBadge("stopping", "working"),
    "undone": StateBadge("void", "ended"),
    # people, tokens, invitations, offers
    "live": StateBadge("active", "success"),
    "invited": StateBadge("requested", "warning"),
    "expired": StateBadge("released", "ended"),
    "revoked": StateBadge("void", "ended"),
    "published": StateBadge("active", "success"),
    "retired": StateBadge("void", "ended"),
    "metered": StateBadge("active", "success"),
    "suspended": StateBadge("stopped", ""),
    "reserved": StateBadge("kept", "reserved"),
    "warning": StateBadge("warn", "warning"),
    "free": StateBadge("active", "success"),
}
STATE_WORDS = {"noticed": gettext_noop("Notified")}  # of states whose API word is not the display word
UNKNOWN_BADGE = StateBadge("released", "ended")
SPINNING_SYMBOL = "provisioning"


def badge_of(state: str) -> StateBadge:
    """Return the badge of a state; an unknown one gets the neutral ring."""
    return BADGES.get(state, UNKNOWN_BADGE)


def state_word(state: str) -> str:
    """Return a state's display word: the API's word, capitalized, or its own."""
    if state in STATE_WORDS:
        return _(STATE_WORDS[state])
    return state.replace("_", " ").capitalize()
