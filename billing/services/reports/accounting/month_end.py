"""Month end for an accountant: open invoices, unbilled usage, deferred revenue.

All of it is as of a moment, from the ledger and the invoices. Requires staff scope.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from billing.domain.money import Money
from billing.services.tax import tax_determination
from ports.postgres.sql_statements import query_rows

AGE_LIMITS = (0, 30, 60, 90)  # days overdue at the end of each bracket but the last
AGE_NAMES = ("Not due", "1–30 days", "31–60 days", "61–90 days", "Over 90 days")
DAY = timedelta(days=1)
AGEING_HEADS = ("tenant", "tenant_name", "invoice", "number", "month", "finalized", "due", "currency", "total", "open",
                "days_overdue", "bracket")  # fmt: skip
UNBILLED_HEADS = ("tenant", "tenant_name", "month", "invoice", "number", "finalized", "currency", "amount")
DEFERRED_HEADS = ("tenant", "tenant_name", "currency", "prepaid", "granted")


@dataclass(frozen=True, slots=True)
class OpenInvoice:
    """What a tenant owed for an invoice at a moment; minor units."""

    tenant_id: str
    tenant: str
    invoice_id: str
    number: str
    month: str
    finalized_at: datetime | None
    due_at: datetime | None
    currency: str
    total: int
    minor: int
    days_overdue: int

    @property
    def bracket(self) -> int:
        """The index of its age in AGE_NAMES."""
        return sum(self.days_overdue > limit for limit in AGE_LIMITS)

    @property
    def age(self) -> str:
        return AGE_NAMES[self.bracket]


@dataclass(frozen=True, slots=True)
class UnbilledMonth:
    """Revenue of a month without a final invoice at a moment; minor units before tax."""

    tenant_id: str
    tenant: str
    month: str
    invoice_id: str
    number: str  # of the invoice that billed it later, if any
    finalized_at: datetime | None
    currency: str
    minor: int


@dataclass(frozen=True, slots=True)
class DeferredRevenue:
    """What a tenant had prepaid or been granted and not used; minor units."""

    tenant_id: str
    tenant: str
    currency: str
    prepaid: int
    granted: int


def open_invoices(*, at: datetime, tenant: str = "") -> list[OpenInvoice]:
    """Return what was owed, by tenant; it adds up to the ledger's receivables."""
    return [
        OpenInvoice(
            tenant_id=row[0],
            tenant=row[1],
            invoice_id=row[2],
            number=row[3] or "",
            month=row[4] or "",
            finalized_at=row[5],
            due_at=row[6],
            currency=row[7],
            total=row[8] or 0,
            minor=row[9],
            days_overdue=max(-((row[6] - at) // DAY), 0) if row[6] and row[6] < at else 0,
        )
        for row in query_rows("billing/reports/open_invoices", at=at, tenant=tenant)
    ]


def unbilled_months(*, at: datetime, tenant: str = "") -> list[UnbilledMonth]:
    """Return unbilled usage, to be accrued and reversed once billed.

    None of tenants with reports only.
    """
    rows = query_rows("billing/reports/unbilled_months", at=at, tenant=tenant)
    shown_back = tax_determination.find_showback_tenants({row[0] for row in rows})
    return [UnbilledMonth(*row) for row in rows if row[0] not in shown_back]


def deferred_revenue(*, at: datetime, tenant: str = "") -> list[DeferredRevenue]:
    """Return what was owed to tenants; it adds up to the ledger's wallets."""
    return [DeferredRevenue(*row) for row in query_rows("billing/reports/prepaid_balances", at=at, tenant=tenant)]


def sum_by_age(rows: Iterable[OpenInvoice]) -> list[tuple[str, list[Money], Money]]:
    """Return currency, the amount of each age, and their sum."""
    sums = dict[str, list[int]]()
    for row in rows:
        sums.setdefault(row.currency, [0] * len(AGE_NAMES))[row.bracket] += row.minor
    return [
        (currency, [Money(minor, currency) for minor in found], Money(sum(found), currency))
        for currency, found in sorted(sums.items())
    ]
