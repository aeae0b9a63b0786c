"""Price tiers as people enter them, in hours from zero; parsed exactly or refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from billing.domain.money import format_fixed_point
from billing.domain.price_tiers import HOUR, TieredPrice, tier_starts
from billing.models import PriceVersion
from billing.models.prices import PriceModel
from billing.services.catalogue import price_list
from tenants.services.errors import InvalidValue

MAX_TIERS = 20  # tiers per price
MAX_HOURS_LENGTH = 24


@dataclass(frozen=True, slots=True)
class TierInput:
    """A tier as typed: its range in hours, and its hourly price.

    Of a package, the price is of the whole package.
    """

    start: str
    price: str
    end: str | None = None


def parse_tiers(model: str, nano_per_hour: int, inputs: Sequence[TierInput]) -> dict[str, Any]:
    """Return a price version's tier columns, or raise InvalidValue."""
    if model not in PriceModel.values:
        raise InvalidValue(
            "model", f"Pricing model {model[:20]!a} does not exist.", fix=f"Known: {', '.join(PriceModel.values)}."
        )
    if model == PriceModel.FLAT:
        if inputs:
            raise InvalidValue("tiers", "A flat price has no tiers.", fix="Remove the tiers, or choose another model.")
        return {}
    if not inputs or len(inputs) > MAX_TIERS:
        raise InvalidValue(
            "tiers",
            f"The price must have 1 to {MAX_TIERS} tiers.",
            fix="Enter each tier with its first hour and its price.",
        )
    try:
        found = _build_tiers(model, nano_per_hour, inputs)
    except ValueError as error:
        raise InvalidValue(
            "tiers", f"{error}.", fix="Enter the tiers in ascending order from 0, none above the list price."
        ) from error
    return {"model": model, "tier_from_s": list(found.starts), "tier_nano": list(found.prices)}


def _build_tiers(model: str, nano: int, inputs: Sequence[TierInput]) -> TieredPrice:
    costs = [price_list.parse_nano_per_hour(each.price) for each in inputs]
    if model == PriceModel.PACKAGE:
        return TieredPrice(model, nano, tuple(parse_hours(each.start) for each in inputs), tuple(costs))
    starts = [parse_hours(each.start) for each in inputs]
    if starts[0] == 0:  # the base price, repeated
        if costs[0] != nano:
            raise ValueError("the first tier is at the price itself")
        ends = [parse_hours(each.end) if each.end is not None else None for each in inputs]
        return TieredPrice(model, nano, tier_starts(list(zip(starts, ends, strict=True))), tuple(costs[1:]))
    if any(each.end is not None for each in inputs):
        raise ValueError("tiers with an end begin at 0")
    return TieredPrice(model, nano, tuple(starts), tuple(costs))


def parse_hours(hours: str) -> int:
    """Parse hours into whole seconds, or raise InvalidValue."""
    try:
        found = Decimal(hours.strip()) * HOUR if len(hours) <= MAX_HOURS_LENGTH else Decimal("NaN")
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or not 0 <= found < 10**15 or found != found.to_integral_value():
        raise InvalidValue("tiers", "The hours are not a number such as 100 or 0.5.", fix="Enter them again.")
    return int(found)


def parse_tier_lines(text: str) -> list[TierInput]:
    """Parse tiers from a form: one per line, hours, then price."""
    found = []
    for line in filter(None, (each.split() for each in text.splitlines())):
        if len(line) != 2:
            raise InvalidValue(
                "tiers", "Each line must have two numbers: from_hours and price.", fix="For example 100 2.50."
            )
        found.append(TierInput(line[0], line[1]))
    return found


class TierRange(NamedTuple):
    """A tier: its range in hours, and its price in 10⁻⁹ currency units."""

    from_hours: str
    until_hours: str | None
    nano: int


def tier_ranges(version: PriceVersion) -> list[TierRange]:
    """Return a version's tiers, the base price first.

    Of a package, its size and its price.
    """
    starts, costs = version.tier_from_s or [], version.tier_nano or []
    if version.model == PriceModel.PACKAGE:
        return [TierRange(format_hours(starts[0]), None, costs[0])]
    boundaries = [0, *starts] if starts else []
    ends = [*starts, None]
    return [
        TierRange(format_hours(start), None if end is None else format_hours(end), cost)
        for start, end, cost in zip(boundaries, ends, [version.nano_per_hour, *costs], strict=False)
    ]


def describe_tiers(version: PriceVersion) -> list[dict[str, str | None]]:
    """Return a version's tiers as decimals."""
    return [
        {"from": each.from_hours, "until": each.until_hours, "price": format_price(each.nano)}
        for each in tier_ranges(version)
    ]


def format_hours(seconds: int) -> str:
    """Format seconds as hours, with at most six decimals."""
    return _strip_zeros(format_fixed_point(seconds * 10**6 // HOUR, 6))


def format_price(nano: int) -> str:
    """Format a price with as many decimals as it needs."""
    return _strip_zeros(format_fixed_point(nano, 9))


def _strip_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".")
