"""Schedule of reconciliation days, and the nightly retry of parked events."""

from datetime import date, datetime, timedelta

from django.db.models import Q

from billing.models import (
    PaymentDispute,
    PaymentRefund,
    ReconciledCharge,
    ReconciliationPhase,
    StripeCharge,
    StripeDifference,
    StripeReconciliationDay,
)
from billing.services.payments.stripe import webhook_inbox
from billing.services.payments.stripe.payment_cards import collects_by_card
from tenants.services.rls import staff_scope

DAYS = 30  # Stripe keeps its events for this long
CHECK_INTERVAL = timedelta(hours=20)  # once a night
SLOW_AFTER, LATE_AFTER = timedelta(hours=4), timedelta(hours=30)


def schedule_days(*, now: datetime) -> int:
    """Schedule the days to reconcile that were not checked today; return how many.

    These are the last thirty days, older days with differences, and days of payments that were recently
    refunded or disputed.
    """
    if not collects_by_card():
        return 0
    days = _recent_days(now) | _older_days(now)
    StripeReconciliationDay.objects.bulk_create(
        [StripeReconciliationDay(day=day) for day in days], ignore_conflicts=True
    )
    stale = Q(checked_at=None) | Q(checked_at__lt=now - CHECK_INTERVAL)
    ReconciledCharge.objects.filter(day__due_at=None).delete()  # left over from an interrupted task
    queued = StripeReconciliationDay.objects.filter(stale, day__in=days, due_at=None).update(
        due_at=now, begun_at=now, phase=ReconciliationPhase.EVENTS, after="", charges=0, invoices=0, events=0
    )
    if queued:
        webhook_inbox.retry_parked_events(since=now - timedelta(days=DAYS), now=now)
    return queued


def due_days(*, now: datetime) -> list[str]:
    """Return the days waiting to be reconciled, the latest first."""
    waiting = StripeReconciliationDay.objects.filter(due_at__lte=now).order_by("-day")
    return [str(each) for each in waiting.values_list("day", flat=True)]


def count_late_days(*, now: datetime) -> int:
    """Count recent days whose reconciliation is overdue; one query."""
    slow = Q(due_at__isnull=False, begun_at__lt=now - SLOW_AFTER)
    return StripeReconciliationDay.objects.filter(
        slow | Q(checked_at__lt=now - LATE_AFTER), day__in=_recent_days(now)
    ).count()


def _recent_days(now: datetime) -> set[date]:
    return {now.date() - timedelta(days=n) for n in range(DAYS)}


def _older_days(now: datetime) -> set[date]:
    """Return older days with differences, or with payments recently disputed or refunded.

    An acknowledged difference is checked for another thirty days and then no more.
    """
    open_ = Q(acknowledged_at=None) | Q(acknowledged_at__gte=now - timedelta(days=DAYS))
    days = set(StripeDifference.objects.filter(open_).values_list("day__day", flat=True).distinct())
    lately = {"seen_at__gte": now - timedelta(days=DAYS)}
    with staff_scope():
        for marks in (PaymentDispute.objects, PaymentRefund.objects):
            marked = marks.filter(**lately).values("payment_id")
            made = StripeCharge.objects.filter(pk__in=marked).values_list("made_at", flat=True)
            days |= {each.date() for each in made}
    return days
