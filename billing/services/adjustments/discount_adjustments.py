"""Discount adjustments: percentages in the order given, then amounts.

Each percentage is of what the previous one left; amounts follow in the same order.
"""

from billing.domain.discounts import amount_discount, percent_discount
from billing.models import AdjustmentKind, Discount
from billing.models.invoices import LineKind
from billing.services.adjustments.month_amounts import LineKey, MonthAmounts
from broker.models import Offering


def apply_percent_discounts(month: MonthAmounts) -> None:
    """Take percentage discounts off their lines."""
    for discount, lines in _discounts_with_lines(month, percent=True):
        for line in lines:
            month.reduce_line(
                line,
                percent_discount(month.lines[line], discount.percent_bp or 0),
                kind=AdjustmentKind.PERCENT,
                source=discount.pk,
                label=discount.name,
                terms={"percent_bp": discount.percent_bp},
            )


def apply_amount_discounts(month: MonthAmounts) -> None:
    """Take fixed discounts off the invoice, shared among their lines."""
    for discount, lines in _discounts_with_lines(month, percent=False):
        line_amounts = {line: month.lines[line] for line in lines}
        for line, num in amount_discount(line_amounts, discount.minor or 0, exponent=month.exponent).items():
            month.reduce_line(
                line,
                num,
                kind=AdjustmentKind.AMOUNT,
                source=discount.pk,
                label=discount.name,
                terms={"minor": discount.minor},
            )


def discounts_in_force(tenant_id: str, label: str, currency: str) -> list[Discount]:
    """Return a tenant's discounts in a month, in the order of application."""
    rows = Discount.objects.filter(tenant_id=tenant_id, first_month__lte=label).order_by("given_at", "pk")
    valid = [row for row in rows if row.holds_in(label) and row.currency in ("", currency)]
    return sorted(valid, key=lambda row: row.percent_bp is None)


def discounted_lines(discount: Discount, lines: list[LineKey], classes: dict[str, str]) -> list[LineKey]:
    """Return the lines that a discount applies to; `classes` maps offerings to price classes."""
    return [line for line in lines if line[1] in classes and discount.applies_to(line[1], classes[line[1]])]


def price_classes(lines: list[LineKey]) -> dict[str, str]:
    """Return the price class of every offering on the lines.

    A line without an offering gets no discount.
    """
    sold = {offering for _, offering, _ in lines} - set(LineKind.values)
    return dict(Offering.objects.filter(pk__in=sold).values_list("pk", "price_class"))


def _discounts_with_lines(month: MonthAmounts, *, percent: bool) -> list[tuple[Discount, list[LineKey]]]:
    valid = [
        each
        for each in discounts_in_force(month.tenant_id, month.period.label, month.currency)
        if (each.percent_bp is not None) == percent
    ]
    classes = price_classes(list(month.lines)) if valid else {}
    return [(each, discounted_lines(each, list(month.lines), classes)) for each in valid]
