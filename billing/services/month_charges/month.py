"""A tenant's month while it is reckoned: its lines as they stand, and what the month has taken off and added so far."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db import connection

from billing.domain.money import exponent_of, to_minor
from billing.models import BillingPeriod, Invoice, MonthCharge
from billing.services.statements import statement

Key = tuple[str, str, int]  # project, offering, price version: what makes a line


@dataclass(slots=True)
class Month:
    """What a rule sees. Lines are in order, exact over 3600·10⁹, and never below nought."""

    tenant_id: str
    period: BillingPeriod
    currency: str
    lines: dict[Key, int]
    charges: list[MonthCharge] = field(default_factory=list)
    # Unit-seconds that commitments cover, by charge (lease, transition, part, price version): tiers are of the rest.
    covered: dict[tuple[str, int, int, int], int] = field(default_factory=dict)

    @property
    def exponent(self) -> int:
        return exponent_of(self.currency)

    @property
    def minor(self) -> int:
        """What all lines come to, each rounded once; minor units."""
        return sum(to_minor(num, self.exponent) for num in self.lines.values())

    def take_off(self, line: Key, num: int, *, kind: str, source: str, label: str, **more: Any) -> None:
        """Take an amount off a line, as much as it is at most; nothing is written of nothing."""
        off = min(num, self.lines[line])
        if off > 0:
            self._write(line, -off, base=self.lines[line], kind=kind, source=source, label=label, **more)
            self.lines[line] -= off

    def add(
        self,
        num: int,
        *,
        base: int,
        kind: str,
        source: str,
        label: str,
        project: str = "",
        price: int = 0,
        **more: Any,
    ) -> None:
        """Add a line of its own, of no offering; nothing is written of nothing."""
        if num > 0:
            line = project, kind, price
            self._write(line, num, base=base, kind=kind, source=source, label=label, **more)
            self.lines[line] = self.lines.get(line, 0) + num

    def _write(
        self,
        line: Key,
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
            MonthCharge(
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


def begun(invoice: Invoice) -> Month:
    """Return a month before any rule: its lines as its seconds make them. Runs behind the tenant's wall."""
    with connection.cursor() as cursor:
        cursor.execute(statement("month_lines"), {"period": invoice.period_id})
        lines = {
            (project, offering, price): int(num) for project, offering, price, _, num in cursor.fetchall()
        }
    # In an order that no collation decides: shares of equal lines go by it.
    return Month(invoice.tenant_id, invoice.period, invoice.currency, dict(sorted(lines.items())))
