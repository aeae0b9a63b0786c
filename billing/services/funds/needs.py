"""What a lease can come to at most, month by month: what is charged, and what it may still cost at the prices known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum

from billing.domain import holding
from billing.domain.periods import Period
from billing.models import BillingPeriod, PriceVersion, Quote, RatedCharge
from billing.services import periods
from billing.services.prices import LIST
from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services.leases import growing


@dataclass(frozen=True, slots=True)
class Charged:
    """What of a lease is charged: by month, and for how many seconds of it."""

    by_month: Mapping[int, int]
    unit_seconds: int


def charged_of(lease_id: str) -> Charged:
    """Return what of a lease is charged; one query."""
    rows = RatedCharge.objects.filter(lease_id=lease_id).values_list("period_id")
    sums = list(rows.annotate(num=Sum("exact_num"), seconds=Sum("unit_seconds")).order_by())
    return Charged({month: int(num) for month, num, _ in sums}, sum(seconds for *_, seconds in sums))


def needed(lease: Lease, charged: Charged, *, now: datetime) -> dict[int, int]:
    """Return by month what a lease that may still run can come to at most, charged or not; exact.

    A price that is published later than this, and begins before its end, is not known here: `look_again` sets it aside.
    """
    left = lease.max_duration_s - charged.unit_seconds // lease.quantity
    if lease.active_at and lease.state == LeaseState.ACTIVE:
        end = growing.end_of(lease, lease.active_at)
        before = int((end - lease.active_at.replace(microsecond=0)).total_seconds()) + lease.spent_s
        left = before - charged.unit_seconds // lease.quantity
        rest = _spread(lease, end - timedelta(seconds=max(left, 0)), left, holding.spread)
    else:
        since = now.replace(microsecond=0)
        if lease.end_date:
            left = min(left, max(int((lease.end_date - since).total_seconds()), 0))
        rest = _spread(lease, since, left, holding.at_worst)
    return holding.together(charged.by_month, rest)


def _spread(
    lease: Lease, since: datetime, seconds: int, rule: Callable[..., dict[int, int]]
) -> dict[int, int]:
    if seconds <= 0:
        return {}
    until = since + timedelta(seconds=seconds) + holding.LATEST_START
    tenant = lease.project.tenant
    periods.ensure(tenant, since=since, until=until)
    spans = BillingPeriod.objects.filter(tenant=tenant, span__endswith__gt=since, span__startswith__lt=until)
    months = {row.pk: Period(row.span.lower, row.span.upper) for row in spans}
    prices = _prices(lease, since, until)
    return rule(since, seconds, quantity=lease.quantity, prices=prices, months=months)


def _prices(lease: Lease, since: datetime, until: datetime) -> Sequence[holding.Priced]:
    promise = (
        Quote.objects.filter(lease_id=lease.pk, offering=lease.offering_id).first()
        if lease.quote_id
        else None
    )
    if promise:
        return [(since, promise.nano_per_hour)]
    versions = PriceVersion.objects.filter(
        rate_card__name=LIST, offering=lease.offering_id, currency=lease.project.tenant.currency
    )
    known = versions.filter(valid__startswith__lt=until).order_by("valid")
    found = [(row.valid.lower, row.nano_per_hour) for row in known]
    begun = max((n for n, (at, _) in enumerate(found) if at <= since), default=0)
    return found[begun:] or [(since, 0)]
