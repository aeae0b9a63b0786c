"""Commitments: in every second, so many units at the agreed price, used or not.

Covered seconds are cheaper by what the price they were charged at asks more; it is never made dearer. Units that
nobody used are owed at the agreed price, as a line of their own. Which are covered says billing/domain/committing.py.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from billing.domain.committing import Free, Stretch, covered
from billing.models import BillingPeriod, Commitment, MonthKind, PriceVersion
from billing.models.charges import SLICE_SECONDS
from billing.models.invoices import LineKind
from billing.services.month_charges.month import Key, Month
from billing.services.statements import statement

Use = tuple[str, int, int, int]  # lease, transition, part, price version: a charge of the month


@dataclass(frozen=True, slots=True)
class Covered:
    """What of a month a commitment covers: by charge and by line, and what of it nobody used; unit-seconds."""

    agreed: Commitment
    committed: int
    uses: dict[Use, int]
    lines: dict[Key, int]
    unused: int


def apply(month: Month) -> None:
    """Take off what covered seconds are cheaper, and add what was committed to and not used."""
    found = of_month(month.tenant_id, month.period, month.currency)
    wanted = {line[2] for each in found for line in each.lines}
    nano = dict(PriceVersion.objects.filter(pk__in=wanted).values_list("pk", "nano_per_hour"))
    for each in found:
        agreed = each.agreed
        for line, seconds in sorted(each.lines.items()):
            month.take_off(
                line,
                max(nano[line[2]] - agreed.nano_per_hour, 0) * seconds,
                kind=MonthKind.COMMIT,
                source=agreed.pk,
                label="commitment",
                units=seconds,
                meter=SLICE_SECONDS,
                terms={"nano_per_hour": str(agreed.nano_per_hour), "units": agreed.units},
            )
        for use, seconds in each.uses.items():
            month.covered[use] = month.covered.get(use, 0) + seconds
    for each in found:
        agreed = each.agreed
        month.add(
            each.unused * agreed.nano_per_hour,
            base=each.committed * agreed.nano_per_hour,
            kind=MonthKind.SHORTFALL,
            source=agreed.pk,
            label=LineKind.SHORTFALL.label,
            units=each.unused,
            meter=SLICE_SECONDS,
            terms={
                "nano_per_hour": str(agreed.nano_per_hour),
                "units": agreed.units,
                "committed": each.committed,
                "offering": agreed.offering.label,
            },
        )


def of_month(tenant_id: str, month: BillingPeriod, currency: str) -> list[Covered]:
    """Return what each commitment that holds in a month covers of it. Runs behind the tenant's wall."""
    held = in_force(tenant_id, month, currency)
    uses = _uses(month, held) if held else {}
    return [_covered(agreed, month, uses.get(agreed.offering_id, [])) for agreed in held]


def in_force(tenant_id: str, month: BillingPeriod, currency: str) -> list[Commitment]:
    """Return the commitments that hold in a month, by offering, one after the other."""
    rows = Commitment.objects.filter(tenant_id=tenant_id, currency=currency, valid__overlap=month.span)
    return sorted(rows.select_related("offering"), key=lambda row: (row.offering_id, row.valid.lower))


def span_in(agreed: Commitment, month: BillingPeriod) -> tuple[datetime, datetime]:
    """Return from when until when it holds in a month that it holds in."""
    until = agreed.valid.upper
    return max(agreed.valid.lower, month.span.lower), min(until or month.span.upper, month.span.upper)


def _covered(agreed: Commitment, month: BillingPeriod, uses: list[tuple[Key, Stretch]]) -> Covered:
    since, until = (int(at.timestamp()) for at in span_in(agreed, month))
    free = Free(since, until, agreed.units)
    found = covered((each for _, each in uses), free)
    lines = defaultdict[Key, int](int)
    for line, each in uses:
        if each.key in found:
            lines[line] += found[each.key]
    return Covered(
        agreed=agreed,
        committed=agreed.units * (until - since),
        uses=found,  # type: ignore[arg-type]  # the keys that _uses gave
        lines=dict(lines),
        unused=free.left,
    )


def _uses(month: BillingPeriod, held: list[Commitment]) -> dict[str, list[tuple[Key, Stretch]]]:
    asked: dict[str, Any] = {"period": month.pk, "offerings": [each.offering_id for each in held]}
    found = defaultdict[str, list[tuple[Key, Stretch]]](list)
    with connection.cursor() as cursor:
        cursor.execute(statement("committed"), asked)
        for lease, seq, part, project, offering, price, start, end, units in cursor.fetchall():
            use = Stretch(lease, start, end, units, (lease, seq, part, price))
            found[offering].append(((project, offering, price), use))
    return found
