"""Which days are to be compared with Stripe, and that what was parked is looked at once more."""

from datetime import date, datetime, timedelta

from django.db.models import Q

from billing.models import (
    DayPhase,
    PaymentDispute,
    PaymentRefund,
    StripeCharge,
    StripeDay,
    StripeDifference,
    StripeSeen,
)
from billing.services.stripe import inbox
from billing.services.stripe.cards import taken_here
from tenants.services.walls import as_staff

DAYS = 30  # Stripe tells of its events for so long
EVERY = timedelta(hours=20)  # once a night
SOON, LATE = timedelta(hours=4), timedelta(hours=30)


def plan(*, now: datetime) -> int:
    """Have every day of the last thirty compared once more that was not today; return how many.

    So are older ones where something differs, and those of payments of which something went back lately.
    """
    if not taken_here():
        return 0
    days = _lately(now) | _older(now)
    StripeDay.objects.bulk_create([StripeDay(day=day) for day in days], ignore_conflicts=True)
    stale = Q(checked_at=None) | Q(checked_at__lt=now - EVERY)
    StripeSeen.objects.filter(day__due_at=None).delete()  # of a task that was cut short
    queued = StripeDay.objects.filter(stale, day__in=days, due_at=None).update(
        due_at=now, begun_at=now, phase=DayPhase.EVENTS, after="", charges=0, invoices=0, events=0
    )
    if queued:
        inbox.look_again_at_parked(since=now - timedelta(days=DAYS), now=now)
    return queued


def due(*, now: datetime) -> list[str]:
    """Return the days that wait to be compared, the latest first."""
    waiting = StripeDay.objects.filter(due_at__lte=now).order_by("-day")
    return [str(each) for each in waiting.values_list("day", flat=True)]


def late(*, now: datetime) -> int:
    """Count the days of the last thirty that should have been compared by now and were not; one query."""
    slow = Q(due_at__isnull=False, begun_at__lt=now - SOON)
    return StripeDay.objects.filter(slow | Q(checked_at__lt=now - LATE), day__in=_lately(now)).count()


def _lately(now: datetime) -> set[date]:
    return {now.date() - timedelta(days=n) for n in range(DAYS)}


def _older(now: datetime) -> set[date]:
    """Return the days on which something differs, and those whose payments were disputed or refunded lately.

    What a person acknowledged waits for nobody: its day is looked at for as long again, and then no more by itself.
    """
    open_ = Q(acknowledged_at=None) | Q(acknowledged_at__gte=now - timedelta(days=DAYS))
    days = set(StripeDifference.objects.filter(open_).values_list("day__day", flat=True).distinct())
    lately = {"seen_at__gte": now - timedelta(days=DAYS)}
    with as_staff():
        for marks in (PaymentDispute.objects, PaymentRefund.objects):
            marked = marks.filter(**lately).values("payment_id")
            made = StripeCharge.objects.filter(pk__in=marked).values_list("made_at", flat=True)
            days |= {each.date() for each in made}
    return days
