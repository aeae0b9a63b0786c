"""Tier adjustments: savings of graduated, volume and package prices over a tenant's month."""

import json
from typing import Any

from billing.domain.price_tiers import TieredPrice
from billing.models import AdjustmentKind, PriceVersion
from billing.models.prices import PriceModel
from billing.services.adjustments.month_amounts import LineKey, MonthAmounts
from ports.postgres.sql_statements import query_rows

LABELS = {PriceModel.GRADUATED: "graduated price", PriceModel.VOLUME: "volume price", PriceModel.PACKAGE: "packages"}


def apply_tiers(month: MonthAmounts) -> None:
    """Take the savings of tiered prices off each line.

    Tiers count the tenant's usage across all its projects; usage that a quote priced or a commitment
    covers is excluded.
    """
    wanted = {price for _, _, price in month.lines}
    versions = {
        version.pk: version for version in PriceVersion.objects.filter(pk__in=wanted).exclude(model=PriceModel.FLAT)
    }
    if not versions:
        return
    savings, units = dict[LineKey, int](), dict[LineKey, int]()
    for project, offering, price, since, until, total in _tiered_usage(month):
        if price in versions:
            line = project, offering, price
            savings[line] = savings.get(line, 0) + tiered_price_of(versions[price]).savings(since, until, total=total)
            units[line] = units.get(line, 0) + until - since
    for line in sorted(savings):
        version = versions[line[2]]
        month.reduce_line(
            line,
            savings[line],
            kind=AdjustmentKind.TIER,
            source=str(version.pk),
            label=LABELS[PriceModel(version.model)],
            units=units[line],
            meter="slice_seconds",
        )


def tiered_price_of(version: PriceVersion) -> TieredPrice:
    """Return the tiers of a price version; raises ValueError for a flat price."""
    return TieredPrice(
        version.model, version.nano_per_hour, tuple(version.tier_from_s or ()), tuple(version.tier_nano or ())
    )


def _tiered_usage(month: MonthAmounts) -> list[tuple[Any, ...]]:
    covered = [
        {"lease": lease, "seq": seq, "part": part, "price": price, "seconds": seconds}
        for (lease, seq, part, price), seconds in month.covered.items()
    ]
    return query_rows("billing/adjustments/tier_usage", period=month.period.pk, covered=json.dumps(covered))
