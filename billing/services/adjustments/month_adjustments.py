"""Adjustments of a month: estimated while it is open, written once at the close.

The rules are applied in one order, each to what the previous ones left. None reads what was written
before, so that computing them repeatedly gives the same result.
"""

from collections.abc import Callable, Iterable

from billing.models import Invoice, InvoiceAdjustment
from billing.services.adjustments import (
    commitment_adjustments,
    discount_adjustments,
    late_adjustments,
    minimum_adjustments,
    tier_adjustments,
)
from billing.services.adjustments.month_amounts import LineKey, MonthAmounts, unadjusted_amounts
from ports.postgres.sql_statements import query_rows
from tenants.services.errors import ProblemError

AdjustmentRule = Callable[[MonthAmounts], None]
# Commitments first, because covered usage has its own price; then tiers, on all that is left; then the
# same for late usage, by the terms of its month; then discounts; the minimum sees the result of all others.
RULES: tuple[AdjustmentRule, ...] = (
    commitment_adjustments.apply_commitments,
    tier_adjustments.apply_tiers,
    late_adjustments.apply_late_usage,
    discount_adjustments.apply_percent_discounts,
    discount_adjustments.apply_amount_discounts,
    minimum_adjustments.apply_minimum,
)


# What rules raise on impossible rows. PostgreSQL refuses the known ones; a new one must not affect
# other tenants.
RULE_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError)


class AdjustmentFailed(ProblemError):
    code, status, title = "month-terms-conflict", 409, "The agreed terms of this month cannot be calculated"


def has_terms(tenant_id: str) -> bool:
    """Return whether an open month of a tenant may have adjustments; one query."""
    return bool(query_rows("billing/adjustments/may_have_adjustments", tenant=tenant_id)[0][0])


def compute_adjustments(invoice: Invoice) -> list[InvoiceAdjustment]:
    """Compute the adjustments of an invoice's month from its charges, in order.

    Call in the tenant's RLS scope. Raises AdjustmentFailed, naming the rule that failed.
    """
    month = unadjusted_amounts(invoice)
    for rule in RULES:
        try:
            rule(month)
        except RULE_ERRORS as error:
            raise AdjustmentFailed(
                f"{rule.__module__.rpartition('.')[2]} of {month.period}: {error or type(error).__name__}",
                fix="Check the tenant's discounts, minimums and prices, and contact the operator of this installation.",
            ) from error
    return month.adjustments


def adjustments_of(invoice: Invoice) -> list[InvoiceAdjustment]:
    """Return an invoice's adjustments, in order: as written, or for a draft, computed."""
    if invoice.number is None:
        return compute_adjustments(invoice) if has_terms(invoice.tenant_id) else []
    rows = InvoiceAdjustment.objects.filter(
        tenant_id=invoice.tenant_id, billed_period_id=invoice.period_id, revision=invoice.revision
    )
    return list(rows.order_by("n"))


def adjustment_by_line(adjustments: Iterable[InvoiceAdjustment]) -> dict[LineKey, int]:
    """Return the sum of adjustments by line."""
    sums = dict[LineKey, int]()
    for adjustment in adjustments:
        sums[adjustment.line] = sums.get(adjustment.line, 0) + int(adjustment.exact_num)
    return sums


def write_adjustments(adjustments: Iterable[InvoiceAdjustment]) -> None:
    """Write the adjustments of a closing month; existing ones stay."""
    InvoiceAdjustment.objects.bulk_create(list(adjustments), ignore_conflicts=True)
