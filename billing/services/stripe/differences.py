"""Differences between the books: written until they agree, and acknowledged by people where nothing is left to do."""

from datetime import datetime

import structlog
from django.db import transaction

from billing.domain.stripe_compare import Difference
from billing.models import StripeDay, StripeDifference
from broker.services.leases import evicting
from tenants.services import audit
from tenants.services.actors import Actor

log = structlog.get_logger(__name__)
UNREAD = {"acknowledged_at": None, "acknowledged_by": "", "why": ""}


@transaction.atomic
def write(day: StripeDay, found: list[Difference], currencies: dict[str, str], *, now: datetime) -> None:
    """Write what differs, and keep since when it does; what was acknowledged and is another amount now waits anew."""
    if not found:
        return
    rows = [
        StripeDifference(
            day=day,
            kind=each.kind,
            ref=each.ref,
            currency=currencies.get(each.ref, ""),
            ours=each.ours,
            theirs=each.theirs,
            booked=each.booked,
            back=each.back,
            found_at=now,
            seen_at=now,
        )
        for each in found
    ]
    were = {
        (each.kind, each.ref): each
        for each in day.found.filter(ref__in=[row.ref for row in rows]).exclude(acknowledged_at=None)
    }
    changed = [
        was.pk for row in rows if (was := were.get((row.kind, row.ref))) and was.amounts != row.amounts
    ]
    StripeDifference.objects.filter(pk__in=changed).update(**UNREAD)
    StripeDifference.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["day", "kind", "ref"],
        update_fields=["ours", "theirs", "booked", "back", "seen_at"],
    )


def forget(day: StripeDay, *, before: datetime) -> int:
    """Forget what was not seen again, for it agrees by now; return how many are left that wait for a person."""
    day.found.filter(seen_at__lt=before).delete()
    left = day.found.filter(acknowledged_at=None).count()
    if left:
        log.error("our books and Stripe's differ", day=str(day), differences=left)
    return left


@transaction.atomic
def acknowledge(difference: StripeDifference, *, why: str, actor: Actor, now: datetime) -> bool:
    """Let a difference wait for nobody any longer, for a reason; tell whether it waited. Raises Invalid."""
    reason = evicting.reason(why)
    waits = StripeDifference.objects.filter(pk=difference.pk, acknowledged_at=None)
    if not waits.update(acknowledged_at=now, acknowledged_by=actor.label[:200], why=reason[:200]):
        return False
    StripeDay.objects.filter(pk=difference.day_id, differences__gt=0).update(
        differences=StripeDifference.objects.filter(day=difference.day_id, acknowledged_at=None).count()
    )
    audit.record(
        "stripe.acknowledge",
        actor=actor,
        now=now,
        subject_id=difference.ref,
        subject_label=difference.title,
        reason=reason,
    )
    return True
