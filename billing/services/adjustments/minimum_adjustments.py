"""Minimum adjustment: what the month lacks of the minimum, prorated by the second."""

from billing.domain.minimums import minimum_shortfall, prorate_minimum
from billing.domain.money import EXACT_PER_UNIT
from billing.models import AdjustmentKind, BillingPeriod, Minimum
from billing.models.invoices import LineKind
from billing.services.adjustments.month_amounts import MonthAmounts
from billing.services.rating.recount import to_period


def apply_minimum(month: MonthAmounts) -> None:
    """Add the missing amount, as a line of its own."""
    agreed = minimums_in_force(month.tenant_id, month.period, month.currency)
    least = sum(part for _, part in agreed)
    lines = month.total_minor
    minor_unit = EXACT_PER_UNIT // 10**month.exponent
    if agreed:
        month.add_line(
            minimum_shortfall(least, lines) * minor_unit,
            base=lines * minor_unit,
            kind=AdjustmentKind.MINIMUM,
            source=agreed[0][0].pk,
            label=LineKind.MINIMUM.label,
            terms={"least": least, "lines": lines},
        )


def minimums_in_force(tenant_id: str, month: BillingPeriod, currency: str) -> list[tuple[Minimum, int]]:
    """Return the minimums in a month, in order, each with its prorated amount.

    Minor units.
    """
    span = to_period(month.span.lower, month.span.upper)
    rows = Minimum.objects.filter(tenant_id=tenant_id, currency=currency, valid__overlap=month.span)
    return [(row, _prorated(row, span.seconds, month)) for row in rows.order_by("valid")]


def _prorated(agreed: Minimum, of: int, month: BillingPeriod) -> int:
    since = max(agreed.valid.lower, month.span.lower)
    until = min(agreed.valid.upper or month.span.upper, month.span.upper)
    return prorate_minimum(agreed.minor, seconds=to_period(since, until).seconds, of=of)
