"""Amounts of a month while adjustments are applied."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from billing.domain.money import exponent_of, to_minor
from billing.models import BillingPeriod, Invoice, InvoiceAdjustment
from ports.postgres.sql_statements import query_rows

LineKey = tuple[str, str, int]  # project, offering, price version: the key of a line


@dataclass(slots=True)
class MonthAmounts:
    """What an adjustment rule sees and changes.

    Lines are in order, exact over 3600·10⁹, and never negative.
    """

    tenant_id: str
    period: BillingPeriod
    currency: str
    lines: dict[LineKey, int]
    charges: list[InvoiceAdjustment] = field(default_factory=list)
    # Unit-seconds covered by commitments, by charge (lease, transition, part, price version).
    # Tiers apply to the rest.
    covered: dict[tuple[str, int, int, int], int] = field(default_factory=dict)

    @property
    def exponent(self) -> int:
        return exponent_of(self.currency)

    @property
    def total_minor(self) -> int:
        """Sum of all lines, each rounded once; minor units."""
        return sum(to_minor(num, self.exponent) for num in self.lines.values())

    def reduce_line(self, line: LineKey, num: int, *, kind: str, source: str, label: str, **more: Any) -> None:
        """Reduce a line, at most to zero; a reduction of zero is not recorded."""
        off = min(num, self.lines[line])
        if off > 0:
            self._write(line, -off, base=self.lines[line], kind=kind, source=source, label=label, **more)
            self.lines[line] -= off

    def add_line(
        self, num: int, *, base: int, kind: str, source: str, label: str, project: str = "", price: int = 0, **more: Any
    ) -> None:
        """Add a line without an offering; an amount of zero is not recorded."""
        if num > 0:
            line = project, kind, price
            self._write(line, num, base=base, kind=kind, source=source, label=label, **more)
            self.lines[line] = self.lines.get(line, 0) + num

    def _write(
        self,
        line: LineKey,
        num: int,
        *,
        base: int,
        kind: str,
        source: str,
        label: str,
        units: int = 0,
        meter: str = "",
        terms: dict[str, Any] | None = None,
    ) -> None:
        project, offering, price = line
        self.charges.append(
            InvoiceAdjustment(
                tenant_id=self.tenant_id,
                period_id=self.period.pk,
                billed_period_id=self.period.pk,
                kind=kind,
                source=source,
                project_id=project,
                offering_id=offering,
                price_version_id=price,
                n=len(self.charges) + 1,
                units=units,
                meter=meter,
                base_num=Decimal(base),
                exact_num=Decimal(num),
                label=label,
                terms=terms or {},
            )
        )


def month_before_adjustments(invoice: Invoice) -> MonthAmounts:
    """Return a month before any rule: its lines as charged.

    Call in the tenant's RLS scope.
    """
    rows = query_rows("billing/adjustments/line_amounts", period=invoice.period_id)
    lines = {(project, offering, price): int(num) for project, offering, price, _, num in rows}
    # Sorted independently of any collation, because shares of equal lines depend on the order.
    return MonthAmounts(invoice.tenant_id, invoice.period, invoice.currency, dict(sorted(lines.items())))
