"""Tiers as people say them: in hours of one, from nought on; read exactly, or refused before anything is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from billing.domain.money import fixed_point
from billing.domain.tiers import HOUR, Tiered, tiled
from billing.models import PriceVersion
from billing.models.prices import PriceModel
from billing.services import prices
from tenants.services.refusals import Invalid

MOST = 20  # tiers of one price
LONGEST = 24


@dataclass(frozen=True, slots=True)
class Said:
    """One tier: from and until how many hours, as typed, and what an hour costs there; of a package, all of it."""

    start: str
    price: str
    end: str | None = None


def read(model: str, nano_per_hour: int, said: Sequence[Said]) -> dict[str, Any]:
    """Return what a price version keeps of its tiers, or raise Invalid for what cannot be meant."""
    if model not in PriceModel.values:
        raise Invalid(
            "model", f"There is no model {model[:20]!a}.", fix=f"Known: {', '.join(PriceModel.values)}."
        )
    if model == PriceModel.FLAT:
        if said:
            raise Invalid(
                "tiers", "A flat price has no tiers.", fix="Leave them out, or choose another model."
            )
        return {}
    if not said or len(said) > MOST:
        raise Invalid(
            "tiers", f"It has from one to {MOST} tiers.", fix="Say from how many hours on which price holds."
        )
    try:
        found = _read(model, nano_per_hour, said)
    except ValueError as odd:
        raise Invalid(
            "tiers", f"{odd}.", fix="Say them anew: from 0 on, in order, none dearer than the price."
        ) from odd
    return {"model": model, "tier_from_s": list(found.starts), "tier_nano": list(found.prices)}


def _read(model: str, nano: int, said: Sequence[Said]) -> Tiered:
    costs = [prices.nano_of(each.price) for each in said]
    if model == PriceModel.PACKAGE:
        return Tiered(model, nano, tuple(seconds_of(each.start) for each in said), tuple(costs))
    starts = [seconds_of(each.start) for each in said]
    if starts[0] == 0:  # the price itself, said once more
        if costs[0] != nano:
            raise ValueError("the first tier is at the price itself")
        ends = [seconds_of(each.end) if each.end is not None else None for each in said]
        return Tiered(model, nano, tiled(list(zip(starts, ends, strict=True))), tuple(costs[1:]))
    if any(each.end is not None for each in said):
        raise ValueError("tiers with an end begin at 0")
    return Tiered(model, nano, tuple(starts), tuple(costs))


def seconds_of(hours: str) -> int:
    """Read hours as they are typed, in whole seconds, or raise Invalid."""
    try:
        found = Decimal(hours.strip()) * HOUR if len(hours) <= LONGEST else Decimal("NaN")
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or not 0 <= found < 10**15 or found != found.to_integral_value():
        raise Invalid(
            "tiers", "Hours are a number such as 100 or 0.5, of whole seconds.", fix="Type them anew."
        )
    return int(found)


def lines(text: str) -> list[Said]:
    """Read tiers as a page's form has them, one on a line: hours, then the price."""
    found = []
    for line in filter(None, (each.split() for each in text.splitlines())):
        if len(line) != 2:
            raise Invalid(
                "tiers",
                "A line has two numbers: from how many hours on, and the price.",
                fix="Such as 100 2.50.",
            )
        found.append(Said(line[0], line[1]))
    return found


def told(version: PriceVersion) -> list[dict[str, str | None]]:
    """Return a version's tiers, the price itself first, as decimals; of a package its size and what one costs."""
    starts, costs = version.tier_from_s or [], version.tier_nano or []
    if version.model == PriceModel.PACKAGE:
        return [{"from": hours(starts[0]), "until": None, "price": decimal(costs[0])}]
    borders = [0, *starts] if starts else []
    ends = [*starts, None]
    return [
        {"from": hours(start), "until": None if end is None else hours(end), "price": decimal(cost)}
        for start, end, cost in zip(borders, ends, [version.nano_per_hour, *costs], strict=False)
    ]


def hours(seconds: int) -> str:
    """Write seconds as hours, with as many decimals as they need, at most six."""
    return _short(fixed_point(seconds * 10**6 // HOUR, 6))


def decimal(nano: int) -> str:
    """Write a price with as many decimals as it needs."""
    return _short(fixed_point(nano, 9))


def _short(text: str) -> str:
    return text.rstrip("0").rstrip(".")
