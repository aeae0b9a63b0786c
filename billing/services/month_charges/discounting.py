"""Discounts: first every percentage, in the order in which they were given, each of what the one before left; then
amounts of money, in the same order.
"""

from billing.domain.discounting import amount_off, percent_off
from billing.models import Discount, MonthKind
from billing.models.invoices import LineKind
from billing.services.month_charges.month import Key, Month
from broker.models import Offering


def percents(month: Month) -> None:
    """Take percentages off the lines that they are of."""
    for discount, lines in _of(month, percent=True):
        for line in lines:
            month.take_off(
                line,
                percent_off(month.lines[line], discount.percent_bp or 0),
                kind=MonthKind.PERCENT,
                source=discount.pk,
                label=discount.name,
                terms={"percent_bp": discount.percent_bp},
            )


def amounts(month: Month) -> None:
    """Take amounts off the invoice, shared among the lines that they are of."""
    for discount, lines in _of(month, percent=False):
        held = {line: month.lines[line] for line in lines}
        for line, num in amount_off(held, discount.minor or 0, exponent=month.exponent).items():
            month.take_off(
                line,
                num,
                kind=MonthKind.AMOUNT,
                source=discount.pk,
                label=discount.name,
                terms={"minor": discount.minor},
            )


def in_force(tenant_id: str, month: str, currency: str) -> list[Discount]:
    """Return a tenant's discounts that hold in a month, in the order in which they are applied."""
    rows = Discount.objects.filter(tenant_id=tenant_id, first_month__lte=month).order_by("given_at", "pk")
    held = [row for row in rows if row.holds_in(month) and row.currency in ("", currency)]
    return sorted(held, key=lambda row: row.percent_bp is None)


def lines_of(discount: Discount, lines: list[Key], classes: dict[str, str]) -> list[Key]:
    """Return the lines that a discount is of; `classes` says on which terms each offering is sold."""
    return [line for line in lines if line[1] in classes and discount.is_of(line[1], classes[line[1]])]


def classes_of(lines: list[Key]) -> dict[str, str]:
    """Return the price class of every offering that lines are of; what is of none is not cheaper by any discount."""
    sold = {offering for _, offering, _ in lines} - set(LineKind.values)
    return dict(Offering.objects.filter(pk__in=sold).values_list("pk", "price_class"))


def _of(month: Month, *, percent: bool) -> list[tuple[Discount, list[Key]]]:
    held = [
        each
        for each in in_force(month.tenant_id, month.period.label, month.currency)
        if (each.percent_bp is not None) == percent
    ]
    classes = classes_of(list(month.lines)) if held else {}
    return [(each, lines_of(each, list(month.lines), classes)) for each in held]
