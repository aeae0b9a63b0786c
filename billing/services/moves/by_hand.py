"""What operators settle by hand: a payment or a top-up that its gateway will never accept took nothing.

That counts for less than the gateway's own word. Where it is set here, it is asked to see that nothing is ever taken
under that key: only then is the row declined, and where it was taken after all, that is what is written. Where the
gateway is gone for good, the operators' word has to do. That something was taken nobody can say by hand, for our
books have no other proof of it.
"""

from datetime import datetime

import structlog
from django.db import transaction

from billing.models import PaymentStatus
from billing.services.moves.moving import CLAIM, Moving, Row, legible, untaken
from broker.services.leases import evicting
from tenants.services.actors import Actor
from tenants.services.refusals import Refused
from tenants.services.walls import as_tenant

log = structlog.get_logger(__name__)


class NotByHand(Refused):
    code, status, title = "not-by-hand", 409, "This cannot be settled by hand now"


@transaction.atomic
def nothing_was_taken(moving: Moving[Row], row: Row, *, why: str, actor: Actor, now: datetime) -> Row:
    """Say that a row took nothing, and return it: declined, or pending while its gateway is asked to see to that.

    Raises NotByHand, Invalid.
    """
    reason = evicting.reason(why)
    with as_tenant(row.tenant_id):
        moving.lock(row)
        found = moving.rows().get(pk=row.pk)
        _check(moving, found, now)
        log.warning("settled by hand", **{moving.name: found.pk}, by=actor.label, why=reason)
        told = {"gateway": found.gateway, "code": found.code, "reason": reason}
        if moving.asks_here(found):
            moving.anew(found, now=now, untaken=legible(reason))
        else:
            declined = untaken(reason)
            settled = moving.as_read(found).update(
                status=PaymentStatus.DECLINED,
                settled_at=now,
                due_at=None,
                claimed_until=None,
                stuck_at=None,
                trouble="",
                untaken=legible(reason),
                code=declined.code,
                reason=legible(declined.reason),
            )
            if not settled:
                raise NotByHand(
                    f"{moving.title.capitalize()} {found.pk} has just moved on.", fix="Look at it again."
                )
            found.refresh_from_db()
            moving.declined(found, found.reason, now=now)
        moving.record("nothing_taken", found, actor=actor, now=now, **told)
        return found


def _check(moving: Moving[Row], row: Row, now: datetime) -> None:
    """Refuse while anybody may still bring the gateway's own answer: that counts for more than a person's."""
    what = f"{moving.title.capitalize()} {row.pk}"
    if row.status == PaymentStatus.STUCK:
        quiet_at = row.stuck_at + CLAIM if row.stuck_at else now  # a worker that asked before lives no longer
    elif row.status == PaymentStatus.PENDING and not moving.asks_here(row):
        quiet_at = row.claimed_until or now
    else:
        raise NotByHand(
            f"{what} is {row.status}, and waits for no person.",
            fix="Look at the list again: it may have been settled, or is being asked for.",
        )
    if now < quiet_at:
        raise NotByHand(
            f"{what} may still get an answer from {row.gateway}.",
            fix=f"Wait until {quiet_at:%H:%M:%S} UTC.",
        )
