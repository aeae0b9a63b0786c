"""Reconciliation differences: stored until they agree, and acknowledged where nothing is left to do."""

from datetime import datetime

import structlog
from django.db import transaction

from billing.domain.stripe_reconciliation import ReconciliationDifference
from billing.models import StripeDifference, StripeReconciliationDay
from broker.services.leases.lifecycle import eviction
from tenants.services import audit
from tenants.services.actors import Actor

log = structlog.get_logger(__name__)
UNACKNOWLEDGED = {"acknowledged_at": None, "acknowledged_by": "", "why": ""}


@transaction.atomic
def store_differences(
    day: StripeReconciliationDay, found: list[ReconciliationDifference], currencies: dict[str, str], *, now: datetime
) -> None:
    """Store differences, keeping when each began.

    An acknowledged difference whose amounts changed waits for a person again.
    """
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
    changed = [was.pk for row in rows if (was := were.get((row.kind, row.ref))) and was.amounts != row.amounts]
    StripeDifference.objects.filter(pk__in=changed).update(**UNACKNOWLEDGED)
    StripeDifference.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["day", "kind", "ref"],
        update_fields=["ours", "theirs", "booked", "back", "seen_at"],
    )


def delete_resolved(day: StripeReconciliationDay, *, before: datetime) -> int:
    """Delete differences that were not found again; return how many wait for a person."""
    day.found.filter(seen_at__lt=before).delete()
    left = day.found.filter(acknowledged_at=None).count()
    if left:
        log.error("difference between Stripe and the ledger", day=str(day), differences=left)
    return left


@transaction.atomic
def acknowledge_difference(difference: StripeDifference, *, why: str, actor: Actor, now: datetime) -> bool:
    """Acknowledge a difference with a reason; return whether it was open. Raises InvalidValue."""
    reason = eviction.clean_reason(why)
    waits = StripeDifference.objects.filter(pk=difference.pk, acknowledged_at=None)
    if not waits.update(acknowledged_at=now, acknowledged_by=actor.label[:200], why=reason[:200]):
        return False
    StripeReconciliationDay.objects.filter(pk=difference.day_id, differences__gt=0).update(
        differences=StripeDifference.objects.filter(day=difference.day_id, acknowledged_at=None).count()
    )
    audit.record("stripe.acknowledge", difference.ref, difference.title, actor=actor, now=now, reason=reason)
    return True
