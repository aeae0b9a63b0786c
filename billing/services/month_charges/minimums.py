"""The least of a month: what its lines lack of it, by the second that the agreement holds in it."""

from billing.domain.minimum import lacking, prorated
from billing.domain.money import EXACT_PER_UNIT
from billing.models import BillingPeriod, Minimum, MonthKind
from billing.models.invoices import LineKind
from billing.services.month_charges.month import Month
from billing.services.recount import period


def apply(month: Month) -> None:
    """Add what is lacking, as a line of its own."""
    agreed = in_force(month.tenant_id, month.period, month.currency)
    least = sum(part for _, part in agreed)
    lines = month.minor
    coin = EXACT_PER_UNIT // 10**month.exponent
    if agreed:
        month.add(
            lacking(least, lines) * coin,
            base=lines * coin,
            kind=MonthKind.MINIMUM,
            source=agreed[0][0].pk,
            label=LineKind.MINIMUM.label,
            terms={"least": least, "lines": lines},
        )


def in_force(tenant_id: str, month: BillingPeriod, currency: str) -> list[tuple[Minimum, int]]:
    """Return the agreements that hold in a month, in order, each with its part of it in minor units."""
    span = period(month.span.lower, month.span.upper)
    rows = Minimum.objects.filter(tenant_id=tenant_id, currency=currency, valid__overlap=month.span)
    return [(row, _part(row, span.seconds, month)) for row in rows.order_by("valid")]


def _part(agreed: Minimum, of: int, month: BillingPeriod) -> int:
    since = max(agreed.valid.lower, month.span.lower)
    until = min(agreed.valid.upper or month.span.upper, month.span.upper)
    return prorated(agreed.minor, seconds=period(since, until).seconds, of=of)
