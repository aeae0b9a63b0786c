"""Commitment adjustments: so many units at the agreed price every second, used or not.

Covered seconds are reduced by the difference to the agreed price; they never become dearer. Unused
units are owed at the agreed price, as a line of their own. billing/domain/commitments.py decides
which seconds are covered.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from billing.domain.commitments import ActiveUnits, FreeUnits, covered_unit_seconds
from billing.models import AdjustmentKind, BillingPeriod, Commitment
from billing.models.charges import SLICE_SECONDS
from billing.models.invoices import LineKind
from billing.services.adjustments.month_amounts import (
    FIRST_RULES,
    RULES,
    ChargeKey,
    CountedMonth,
    LineKey,
    MonthAmounts,
)
from ports.postgres.sql_statements import query_rows

LATE_LABEL = "commitment, paid in {month}"


@dataclass(frozen=True, slots=True)
class MonthCharge:
    """A charge that commitments may cover, and whether the invoice carries it."""

    line: LineKey
    use: ActiveUnits
    here: bool


@dataclass(frozen=True, slots=True)
class CoveredUsage:
    """Coverage of a month by a commitment: by charge, by line, and unused; unit-seconds.

    Lines and what they are reduced by are those of the invoice.
    """

    commitment: Commitment
    committed: int
    uses: dict[ChargeKey, int]
    lines: dict[LineKey, int]
    amounts: dict[LineKey, int]  # at the price of the usage, over 3600·10⁹
    reductions: dict[LineKey, int]  # of them
    unused: int


def apply_commitments(month: MonthAmounts) -> None:
    """Reduce covered seconds to the agreed price, and add unused units."""
    found = reduce_covered_lines(month, month.own)
    for each in found:
        commitment = each.commitment
        month.add_line(
            each.unused * commitment.nano_per_hour,
            base=each.committed * commitment.nano_per_hour,
            kind=AdjustmentKind.SHORTFALL,
            source=commitment.pk,
            label=LineKind.SHORTFALL.label,
            units=each.unused,
            meter=SLICE_SECONDS,
            terms={
                "nano_per_hour": str(commitment.nano_per_hour),
                "units": commitment.units,
                "committed": each.committed,
                "offering": commitment.offering.label,
            },
        )


def reduce_covered_lines(month: MonthAmounts, counted: CountedMonth) -> list[CoveredUsage]:
    """Reduce the lines of usage that commitments of a month cover, and return the coverage."""
    found = _month_coverage(month.tenant_id, counted, month.currency, month.rules)
    covered = month.covered.setdefault(counted.period.pk, {})
    for each in found:
        commitment = each.commitment
        nano = 0 if counted.late else commitment.nano_per_hour  # a late second was paid as an unused one
        for line, seconds in sorted(each.lines.items()):
            month.reduce_line(
                line,
                each.reductions[line],
                kind=AdjustmentKind.COMMIT,
                source=counted.source(commitment.pk),
                label=LATE_LABEL.format(month=counted.period.label) if counted.late else "commitment",
                units=seconds,
                meter=SLICE_SECONDS,
                terms={"nano_per_hour": str(nano), "units": commitment.units},
                of=counted,
            )
        for use, seconds in each.uses.items():
            covered[use] = covered.get(use, 0) + seconds
    return found


def commitment_usage(tenant_id: str, month: BillingPeriod, currency: str) -> list[CoveredUsage]:
    """Return the coverage of a month by each commitment that holds in it.

    Call in the tenant's RLS scope.
    """
    return _month_coverage(tenant_id, CountedMonth(month, (month.pk,), month.pk), currency, RULES)


def _month_coverage(tenant_id: str, counted: CountedMonth, currency: str, rules: int) -> list[CoveredUsage]:
    held = commitments_in_force(tenant_id, counted.period, currency)
    charges = _month_charges(counted, held, rules) if held else {}
    return [
        covered
        for offering, together in groupby(held, lambda commitment: commitment.offering_id)
        for covered in _covered_usage(list(together), counted, charges.get(offering, []))
    ]


def commitments_in_force(tenant_id: str, month: BillingPeriod, currency: str) -> list[Commitment]:
    """Return a month's commitments by offering, start and id, in order of use."""
    rows = Commitment.objects.filter(tenant_id=tenant_id, currency=currency, valid__overlap=month.span)
    return sorted(rows.select_related("offering"), key=commitment_order)


def commitment_order(commitment: Commitment) -> tuple[str, datetime, str]:
    """Return a commitment's place in the order of use."""
    return commitment.offering_id, commitment.valid.lower, commitment.pk


def commitment_span(commitment: Commitment, month: BillingPeriod) -> tuple[datetime, datetime]:
    """Return the part of a month in which a commitment holds."""
    until = commitment.valid.upper
    return max(commitment.valid.lower, month.span.lower), min(until or month.span.upper, month.span.upper)


def _covered_usage(
    together: list[Commitment], counted: CountedMonth, charges: list[MonthCharge]
) -> Iterator[CoveredUsage]:
    """Yield the coverage by each of the commitments to one offering.

    Late usage is covered by what usage on earlier invoices left.
    """
    spans = [_epoch_span(commitment, counted.period) for commitment in together]
    free = [FreeUnits(*span, commitment.units) for span, commitment in zip(spans, together, strict=True)]
    earlier = covered_unit_seconds((each.use for each in charges if not each.here), free)
    covered = covered_unit_seconds((each.use for each in charges if each.here), free)
    for n, commitment in enumerate(together):
        lines, amounts, reductions = (defaultdict[LineKey, int](int) for _ in range(3))
        for each in charges:
            if each.here and (seconds := covered[n].get(each.use.key)):
                paid = 0 if counted.late else commitment.nano_per_hour
                lines[each.line] += seconds
                amounts[each.line] += each.use.nano_per_hour * seconds
                reductions[each.line] += max(each.use.nano_per_hour - paid, 0) * seconds
        since, until = spans[n]
        yield CoveredUsage(
            commitment=commitment,
            committed=commitment.units * (until - since),
            uses={**earlier[n], **covered[n]},  # type: ignore[dict-item]  # the keys that _month_charges gave
            lines=dict(lines),
            amounts=dict(amounts),
            reductions=dict(reductions),
            unused=free[n].left,
        )


def _epoch_span(commitment: Commitment, month: BillingPeriod) -> tuple[int, int]:
    since, until = commitment_span(commitment, month)
    return int(since.timestamp()), int(until.timestamp())


def _month_charges(counted: CountedMonth, held: list[Commitment], rules: int) -> dict[str, list[MonthCharge]]:
    found = defaultdict[str, list[MonthCharge]](list)
    rows = query_rows(
        "billing/adjustments/commitment_usage",
        period=counted.period.pk,
        billed=list(counted.billed),
        offerings=[each.offering_id for each in held],
        current=rules > FIRST_RULES,
    )
    for lease, seq, part, correction, project, offering, price, start, end, units, nano, billed in rows:
        use = ActiveUnits(lease, start, end, units, (lease, seq, part, price, correction), nano)
        found[offering].append(MonthCharge((project, offering, price), use, billed == counted.here))
    return found
