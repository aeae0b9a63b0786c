"""What a month comes to beside its seconds: an estimate while it is open, written once when it closes.

The rules are applied in one order, each to what those before it left; none looks at what was written before, so that
reckoning a hundred times is reckoning once.
"""

from collections.abc import Callable, Iterable

from django.db import connection

from billing.models import Invoice, MonthCharge
from billing.services.month_charges import committing, discounting, minimums, tiering
from billing.services.month_charges.month import Key, Month, begun
from billing.services.statements import statement
from tenants.services.refusals import Refused

Rule = Callable[[Month], None]
# Commitments first, for what they cover has a price of its own; then prices in tiers, of all that is left; then what
# was agreed on beside prices; the least of a month sees all the rest.
RULES: tuple[Rule, ...] = (
    committing.apply,
    tiering.apply,
    discounting.percents,
    discounting.amounts,
    minimums.apply,
)


# What rules raise at rows that cannot be meant. PostgreSQL refuses those that are known; one more must not go further
# than its tenant.
ODD = (ValueError, TypeError, LookupError, ArithmeticError)


class Unreckonable(Refused):
    code, status, title = "month-unreckonable", 409, "What was agreed for this month cannot be worked out"


def any_terms(tenant_id: str) -> bool:
    """Tell whether an open month of a tenant may carry anything beside its seconds; one query."""
    with connection.cursor() as cursor:
        cursor.execute(statement("month_terms"), {"tenant": tenant_id})
        return bool(cursor.fetchone()[0])


def reckoned(invoice: Invoice) -> list[MonthCharge]:
    """Work out what an invoice's month carries, in order, from what was charged. Runs behind the tenant's wall.

    Raises Unreckonable where that cannot be, and says by which rule.
    """
    month = begun(invoice)
    for rule in RULES:
        try:
            rule(month)
        except ODD as odd:
            raise Unreckonable(
                f"{rule.__module__.rpartition('.')[2]} of {month.period}: {odd or type(odd).__name__}",
                fix="Look at the tenant's discounts, minimums and prices, and tell whoever runs this installation.",
            ) from odd
    return month.charges


def of(invoice: Invoice) -> list[MonthCharge]:
    """Return what an invoice's month carries, in order: as it was written, or of a draft as it would be now."""
    if invoice.number is None:
        return reckoned(invoice) if any_terms(invoice.tenant_id) else []
    rows = MonthCharge.objects.filter(tenant_id=invoice.tenant_id, billed_period_id=invoice.period_id)
    return list(rows.order_by("n"))


def by_line(charges: Iterable[MonthCharge]) -> dict[Key, int]:
    """Return what the month takes off each line, or adds."""
    found = dict[Key, int]()
    for charge in charges:
        found[charge.line] = found.get(charge.line, 0) + int(charge.exact_num)
    return found


def write(charges: Iterable[MonthCharge]) -> None:
    """Write what a month that closes carries. What is there already stays: its key is what it stands for."""
    MonthCharge.objects.bulk_create(list(charges), ignore_conflicts=True)
