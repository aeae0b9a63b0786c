"""Each state has a shape, a kind of colour and a word, so that colour never speaks alone."""

from typing import NamedTuple


class Shape(NamedTuple):
    """The symbol of a state, and what kind of news it is: ok, work, wait, bad, keep, gone or still ("")."""

    symbol: str
    kind: str


SHAPES = {
    # leases
    "requested": Shape("requested", "wait"),
    "queued": Shape("queued", "wait"),
    "provisioning": Shape("provisioning", "work"),
    "active": Shape("active", "ok"),
    "stopping": Shape("stopping", "work"),
    "stopped": Shape("stopped", ""),
    "releasing": Shape("releasing", "work"),
    "released": Shape("released", "gone"),
    "failed": Shape("failed", "bad"),
    # volumes
    "deleting": Shape("releasing", "work"),
    "deleted": Shape("released", "gone"),
    # invoices
    "draft": Shape("requested", "gone"),
    "closing": Shape("provisioning", "work"),
    "finalized": Shape("finalized", "wait"),
    "partially_paid": Shape("partially", "wait"),
    "paid": Shape("paid", "ok"),
    "uncollectible": Shape("failed", "bad"),
    "void": Shape("void", "gone"),
    # disputes
    "open": Shape("requested", "wait"),
    "withdrawn": Shape("void", "gone"),
    "approved": Shape("provisioning", "work"),
    "booked": Shape("paid", "ok"),
    "waiting": Shape("queued", "wait"),
    "outdated": Shape("warn", "bad"),
    # payments
    "pending": Shape("provisioning", "work"),
    "succeeded": Shape("paid", "ok"),
    "declined": Shape("failed", "bad"),
    "stuck": Shape("warn", "bad"),
    # machines and cards
    "healthy": Shape("active", "ok"),
    "ready": Shape("active", "ok"),
    "cordoned": Shape("kept", "keep"),
    "draining": Shape("stopping", "work"),
    "maintenance": Shape("void", "gone"),
    "unhealthy": Shape("failed", "bad"),
    "quarantined": Shape("failed", "bad"),
    "unreachable": Shape("warn", "wait"),
    "lost": Shape("failed", "bad"),
    # what an examination finds
    "ok": Shape("active", "ok"),
    "warn": Shape("warn", "wait"),
    "bad": Shape("failed", "bad"),
    "unknown": Shape("released", "gone"),
    # nodes that are cut anew
    "planned": Shape("requested", "wait"),
    "labelling": Shape("provisioning", "work"),
    "cutting": Shape("provisioning", "work"),
    "nudging": Shape("warn", "wait"),
    "opening": Shape("provisioning", "work"),
    "cancelling": Shape("stopping", "work"),
    "done": Shape("active", "ok"),
    "cancelled": Shape("void", "gone"),
    # plans of moves, and moves
    "proposed": Shape("requested", "wait"),
    "accepted": Shape("requested", "work"),
    "running": Shape("provisioning", "work"),
    "noticed": Shape("requested", "work"),
    "moving": Shape("provisioning", "work"),
    "returning": Shape("stopping", "work"),
    "undone": Shape("void", "gone"),
    # people, tokens, invitations, offers
    "live": Shape("active", "ok"),
    "invited": Shape("requested", "wait"),
    "expired": Shape("released", "gone"),
    "revoked": Shape("void", "gone"),
    "published": Shape("active", "ok"),
    "retired": Shape("void", "gone"),
    "metered": Shape("active", "ok"),
    "suspended": Shape("stopped", ""),
    "reserved": Shape("kept", "keep"),
    "warning": Shape("warn", "wait"),
    "free": Shape("active", "ok"),
}
ELSE = Shape("released", "gone")
TURNING = "provisioning"


def shape_of(state: str) -> Shape:
    """Return the shape of a state; a word that has none gets the quiet ring."""
    return SHAPES.get(state, ELSE)


def word_of(state: str) -> str:
    """Return the word of a state as it stands on the screen: the API's word, with a capital."""
    return state.replace("_", " ").capitalize()
