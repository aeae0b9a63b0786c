"""Amounts of a month while adjustments are applied."""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from billing.domain.money import exponent_of, to_minor
from billing.models import BillingPeriod, Invoice, InvoiceAdjustment, InvoiceStatus
from ports.postgres.sql_statements import query_rows

LineKey = tuple[str, str, int]  # project, offering, price version
ChargeKey = tuple[str, int, int, int, str]  # lease, transition, part, price version, correction: a charge of a month
# The rules of adjustments. A final invoice is explained by those of its close; by the first, usage that cites a quote
# was under no commitment and in no tier, and late usage was under none and in the tiers of the invoice's month.
FIRST_RULES, RULES = 1, 2


@dataclass(frozen=True, slots=True)
class CountedMonth:
    """Usage of a month, as far as an invoice and those before it carry it."""

    period: BillingPeriod
    billed: tuple[int, ...]  # months whose invoices carry it
    here: int  # the month of the invoice

    @property
    def late(self) -> bool:
        """Whether only late usage of the month is on the invoice."""
        return self.period.pk != self.here

    def source(self, cause: str) -> str:
        """Return the cause of an adjustment, with its month if that is earlier."""
        return f"{cause}/{self.period.label}" if self.late else cause


@dataclass(slots=True)
class MonthAmounts:
    """Invoice line amounts of one tenant's month, which adjustment rules reduce or extend.

    `lines` maps line keys, sorted, to numerators over 3600·10⁹, which are never negative.
    """

    tenant_id: str
    period: BillingPeriod
    currency: str
    lines: dict[LineKey, int]
    rules: int = RULES
    revision: int = 0  # of the invoice
    adjustments: list[InvoiceAdjustment] = field(default_factory=list)
    # Unit-seconds covered by commitments, by month and rated charge; tiers apply to the rest.
    covered: dict[int, dict[ChargeKey, int]] = field(default_factory=dict)

    @property
    def own(self) -> CountedMonth:
        """The usage of the month itself."""
        return CountedMonth(self.period, (self.period.pk,), self.period.pk)

    @property
    def exponent(self) -> int:
        return exponent_of(self.currency)

    @property
    def total_minor(self) -> int:
        """Sum of all lines, each rounded once; minor units."""
        return sum(to_minor(numerator, self.exponent) for numerator in self.lines.values())

    def reduce_line(self, line: LineKey, numerator: int, *, kind: str, source: str, label: str, **more: Any) -> None:
        """Reduce a line, at most to zero; a reduction of zero is not recorded."""
        reduction = min(numerator, self.lines[line])
        if reduction > 0:
            self._record(line, -reduction, base=self.lines[line], kind=kind, source=source, label=label, **more)
            self.lines[line] -= reduction

    def add_line(self, numerator: int, *, base: int, kind: str, source: str, label: str, **more: Any) -> None:
        """Add a line without project and offering; an amount of zero is not recorded."""
        if numerator > 0:
            line = "", kind, 0
            self._record(line, numerator, base=base, kind=kind, source=source, label=label, **more)
            self.lines[line] = self.lines.get(line, 0) + numerator

    def _record(
        self,
        line: LineKey,
        numerator: int,
        *,
        base: int,
        kind: str,
        source: str,
        label: str,
        units: int = 0,
        meter: str = "",
        terms: dict[str, Any] | None = None,
        of: CountedMonth | None = None,
    ) -> None:
        project, offering, price_version = line
        self.adjustments.append(
            InvoiceAdjustment(
                tenant_id=self.tenant_id,
                period_id=of.period.pk if of else self.period.pk,
                billed_period_id=self.period.pk,
                revision=self.revision,
                kind=kind,
                source=source,
                project_id=project,
                offering_id=offering,
                price_version_id=price_version,
                n=len(self.adjustments) + 1,
                units=units,
                meter=meter,
                base_num=Decimal(base),
                exact_num=Decimal(numerator),
                label=label,
                terms=terms or {},
            )
        )


def unadjusted_amounts(invoice: Invoice) -> MonthAmounts:
    """Return a month's line amounts before any adjustment.

    Call in the tenant's RLS scope.
    """
    rows = query_rows("billing/adjustments/line_amounts", period=invoice.period_id)
    lines = {(project, offering, price): int(num) for project, offering, price, _, num in rows}
    # Sorted independently of any collation, because shares of equal lines depend on the order.
    return MonthAmounts(
        invoice.tenant_id,
        invoice.period,
        invoice.currency,
        dict(sorted(lines.items())),
        rules_of(invoice),
        invoice.revision,
    )


def rules_of(invoice: Invoice) -> int:
    """Return the rules that an invoice follows: the current ones until it is closed."""
    if invoice.status == InvoiceStatus.DRAFT:
        return RULES
    return int(json.loads(invoice.agreed).get("rules", FIRST_RULES)) if invoice.agreed else FIRST_RULES
