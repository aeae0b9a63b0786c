"""Late adjustments: usage of a closed month costs what it would have cost on time.

Seconds that earlier usage left of a commitment were paid as unused ones, so late seconds cost nothing
there. Other late seconds continue the tiers of their month.
"""

from collections.abc import Iterator

from django.db.models import F

from billing.models import BillingPeriod, RatedCharge
from billing.services.adjustments.commitment_adjustments import reduce_covered_lines
from billing.services.adjustments.month_amounts import FIRST_RULES, CountedMonth, MonthAmounts
from billing.services.adjustments.tier_adjustments import reduce_tiered_lines


def apply_late_usage(month: MonthAmounts) -> None:
    """Reduce the lines of late usage by the commitments and tiers of its own month."""
    if month.rules == FIRST_RULES:
        return
    for counted in late_months(month.tenant_id, month.period):
        reduce_covered_lines(month, counted)
        reduce_tiered_lines(month, counted)


def late_months(tenant_id: str, period: BillingPeriod) -> Iterator[CountedMonth]:
    """Yield the closed months with late usage on a month's invoice, in order."""
    late = RatedCharge.objects.filter(billed_period_id=period.pk).exclude(billed_period_id=F("period_id"))
    keys = set(late.values_list("period_id", flat=True).distinct())
    if not keys:
        return
    rows = BillingPeriod.objects.filter(tenant=tenant_id, span__startswith__lte=period.span.lower).order_by("span")
    months = list(rows)
    for n, closed in enumerate(months):
        if closed.pk in keys:
            yield CountedMonth(closed, tuple(each.pk for each in months[n:]), period.pk)
