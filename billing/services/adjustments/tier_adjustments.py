"""Tier adjustments: savings of graduated, volume and package prices over a tenant's month."""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from billing.domain.price_tiers import TieredPrice
from billing.models import AdjustmentKind, PriceVersion
from billing.models.prices import PriceModel
from billing.services.adjustments.month_amounts import FIRST_RULES, CountedMonth, LineKey, MonthAmounts
from ports.postgres.sql_statements import query_rows

LABELS = {PriceModel.GRADUATED: "graduated price", PriceModel.VOLUME: "volume price", PriceModel.PACKAGE: "packages"}


@dataclass(slots=True)
class LineSavings:
    """Savings on a line by tiers of its price and of the price in force."""

    units: int = 0
    own: int = 0  # over 3600·10⁹
    in_force: int = 0
    model: PriceModel = PriceModel.FLAT  # of the price in force


def apply_tiers(month: MonthAmounts) -> None:
    """Take the savings of tiered prices off each line.

    Tiers count the tenant's usage across all its projects; usage that a commitment covers is excluded.
    Usage at a quoted price saves by the tiers of that price, or if that is more, by those of the price
    in force, which the quote caps.
    """
    reduce_tiered_lines(month, month.own)


def reduce_tiered_lines(month: MonthAmounts, counted: CountedMonth) -> None:
    """Reduce the lines of usage by the tiers of its month."""
    usage = _tiered_usage(month, counted)
    wanted = {price for _, _, price in month.lines} | {in_force for *_, in_force, _ in usage if in_force}
    versions = {
        version.pk: version for version in PriceVersion.objects.filter(pk__in=wanted).exclude(model=PriceModel.FLAT)
    }
    if not versions:
        return
    lines = defaultdict[LineKey, LineSavings](LineSavings)
    for project, offering, price, since, until, total, in_force, most in usage:
        own, other = versions.get(price), versions.get(in_force)
        if not own and not other:
            continue
        line = lines[project, offering, price]
        line.units += until - since
        saved = tiered_price_of(own).savings(since, until, total=total) if own else 0
        line.own += saved
        if in_force is None:
            line.in_force += saved
        elif other and (capped := tiered_price_of(other).capped(most)):
            line.in_force += capped.savings(since, until, total=total)
            line.model = PriceModel(other.model)
    for key, line in sorted(lines.items()):
        model = PriceModel(versions[key[2]].model) if line.own >= line.in_force and key[2] in versions else line.model
        month.reduce_line(
            key,
            max(line.own, line.in_force),
            kind=AdjustmentKind.TIER,
            source=counted.source(str(key[2])),
            label=LABELS.get(model, "") + (f" of {counted.period.label}" if counted.late else ""),
            units=line.units,
            meter="slice_seconds",
            of=counted,
        )


def tiered_price_of(version: PriceVersion) -> TieredPrice:
    """Return the tiers of a price version; raises ValueError for a flat price."""
    return TieredPrice(
        version.model, version.nano_per_hour, tuple(version.tier_from_s or ()), tuple(version.tier_nano or ())
    )


def _tiered_usage(month: MonthAmounts, counted: CountedMonth) -> list[tuple[Any, ...]]:
    covered = [
        {"lease": lease, "seq": seq, "part": part, "price": price, "correction": correction, "seconds": seconds}
        for (lease, seq, part, price, correction), seconds in month.covered.get(counted.period.pk, {}).items()
    ]
    return query_rows(
        "billing/adjustments/tier_usage",
        period=counted.period.pk,
        billed=list(counted.billed),
        here=counted.here,
        covered=json.dumps(covered),
        current=month.rules > FIRST_RULES,
    )
