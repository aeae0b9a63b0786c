"""Prices in tiers and packages: what they take off the price of an hour, for all of a tenant's month together."""

import json
from typing import Any

from django.db import connection

from billing.domain.tiers import Tiered
from billing.models import MonthKind, PriceVersion
from billing.models.prices import PriceModel
from billing.services.month_charges.month import Key, Month
from billing.services.statements import statement

WORDS = {
    PriceModel.GRADUATED: "graduated price",
    PriceModel.VOLUME: "volume price",
    PriceModel.PACKAGE: "packages",
}


def apply(month: Month) -> None:
    """Take off each line what its price's tiers are cheaper, whoever of the tenant used what came before."""
    wanted = {price for _, _, price in month.lines}
    versions = {
        version.pk: version
        for version in PriceVersion.objects.filter(pk__in=wanted).exclude(model=PriceModel.FLAT)
    }
    if not versions:
        return
    less, units = dict[Key, int](), dict[Key, int]()
    for project, offering, price, since, until, total in _used(month):
        if price in versions:
            line = project, offering, price
            less[line] = less.get(line, 0) + of(versions[price]).less(since, until, total=total)
            units[line] = units.get(line, 0) + until - since
    for line in sorted(less):
        version = versions[line[2]]
        month.take_off(
            line,
            less[line],
            kind=MonthKind.TIER,
            source=str(version.pk),
            label=WORDS[PriceModel(version.model)],
            units=units[line],
            meter="slice_seconds",
        )


def of(version: PriceVersion) -> Tiered:
    """Return by which tiers a price asks; one that asks by the hour alone raises ValueError."""
    return Tiered(
        version.model,
        version.nano_per_hour,
        tuple(version.tier_from_s or ()),
        tuple(version.tier_nano or ()),
    )


def _used(month: Month) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        covered = [
            {"lease": lease, "seq": seq, "part": part, "price": price, "seconds": seconds}
            for (lease, seq, part, price), seconds in month.covered.items()
        ]
        cursor.execute(statement("tiers"), {"period": month.period.pk, "covered": json.dumps(covered)})
        return list(cursor.fetchall())
