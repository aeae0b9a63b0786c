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
from billing.models import AdjustmentKind, BillingPeriod, Commitment, PriceVersion
from billing.models.charges import SLICE_SECONDS
from billing.models.invoices import LineKind
from billing.services.adjustments.month_amounts import FIRST_RULES, RULES, LineKey, MonthAmounts
from ports.postgres.sql_statements import query_rows

ChargeKey = tuple[str, int, int, int]  # lease, transition, part, price version: a charge of the month


@dataclass(frozen=True, slots=True)
class CoveredUsage:
    """Coverage of a month by a commitment: by charge, by line, and unused; unit-seconds."""

    commitment: Commitment
    committed: int
    uses: dict[ChargeKey, int]
    lines: dict[LineKey, int]
    unused: int


def apply_commitments(month: MonthAmounts) -> None:
    """Reduce covered seconds to the agreed price, and add unused units."""
    found = commitment_usage(month.tenant_id, month.period, month.currency, rules=month.rules)
    wanted = {line[2] for each in found for line in each.lines}
    nano = dict(PriceVersion.objects.filter(pk__in=wanted).values_list("pk", "nano_per_hour"))
    for each in found:
        commitment = each.commitment
        for line, seconds in sorted(each.lines.items()):
            month.reduce_line(
                line,
                max(nano[line[2]] - commitment.nano_per_hour, 0) * seconds,
                kind=AdjustmentKind.COMMIT,
                source=commitment.pk,
                label="commitment",
                units=seconds,
                meter=SLICE_SECONDS,
                terms={"nano_per_hour": str(commitment.nano_per_hour), "units": commitment.units},
            )
        for use, seconds in each.uses.items():
            month.covered[use] = month.covered.get(use, 0) + seconds
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


def commitment_usage(tenant_id: str, month: BillingPeriod, currency: str, *, rules: int = RULES) -> list[CoveredUsage]:
    """Return the coverage of a month by each commitment that holds in it.

    Call in the tenant's RLS scope.
    """
    held = commitments_in_force(tenant_id, month, currency)
    uses = _month_charges(month, held, rules) if held else {}
    return [
        covered
        for offering, together in groupby(held, lambda commitment: commitment.offering_id)
        for covered in _covered_usage(list(together), month, uses.get(offering, []))
    ]


def commitments_in_force(tenant_id: str, month: BillingPeriod, currency: str) -> list[Commitment]:
    """Return the commitments that hold in a month, by offering, start and id: the order of their use."""
    rows = Commitment.objects.filter(tenant_id=tenant_id, currency=currency, valid__overlap=month.span)
    return sorted(rows.select_related("offering"), key=lambda row: (row.offering_id, row.valid.lower, row.pk))


def commitment_span(commitment: Commitment, month: BillingPeriod) -> tuple[datetime, datetime]:
    """Return the part of a month in which a commitment holds."""
    until = commitment.valid.upper
    return max(commitment.valid.lower, month.span.lower), min(until or month.span.upper, month.span.upper)


def _covered_usage(
    together: list[Commitment], month: BillingPeriod, uses: list[tuple[LineKey, ActiveUnits]]
) -> Iterator[CoveredUsage]:
    """Yield the coverage by each of the commitments to one offering."""
    spans = [_epoch_span(commitment, month) for commitment in together]
    free = [FreeUnits(*span, commitment.units) for span, commitment in zip(spans, together, strict=True)]
    covered = covered_unit_seconds((each for _, each in uses), free)
    for commitment, (since, until), left, found in zip(together, spans, free, covered, strict=True):
        lines = defaultdict[LineKey, int](int)
        for line, each in uses:
            if each.key in found:
                lines[line] += found[each.key]
        yield CoveredUsage(
            commitment=commitment,
            committed=commitment.units * (until - since),
            uses=found,  # type: ignore[arg-type]  # the keys that _month_charges gave
            lines=dict(lines),
            unused=left.left,
        )


def _epoch_span(commitment: Commitment, month: BillingPeriod) -> tuple[int, int]:
    since, until = commitment_span(commitment, month)
    return int(since.timestamp()), int(until.timestamp())


def _month_charges(
    month: BillingPeriod, held: list[Commitment], rules: int
) -> dict[str, list[tuple[LineKey, ActiveUnits]]]:
    found = defaultdict[str, list[tuple[LineKey, ActiveUnits]]](list)
    rows = query_rows(
        "billing/adjustments/commitment_usage",
        period=month.pk,
        offerings=[each.offering_id for each in held],
        quoted=rules > FIRST_RULES,
    )
    for lease, seq, part, project, offering, price, start, end, units, nano in rows:
        use = ActiveUnits(lease, start, end, units, (lease, seq, part, price), nano)
        found[offering].append(((project, offering, price), use))
    return found
