"""Amounts of graduated, volume and package tiers."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.price_tiers import HOUR, TieredPrice, tier_starts

HOURS = 3600


@st.composite
def tiered_prices(draw: st.DrawFn, models: tuple[str, ...] = ("graduated", "volume", "package")) -> TieredPrice:
    model, nano = draw(st.sampled_from(models)), draw(st.integers(0, 10**6))
    if model == "package":
        size = draw(st.integers(1, 10**5))
        return TieredPrice(model, nano, (size,), (draw(st.integers(0, size * nano // HOUR)),))
    starts = sorted(draw(st.sets(st.integers(1, 10**5), min_size=1, max_size=5)))
    return TieredPrice(model, nano, tuple(starts), tuple(draw(st.integers(0, nano)) for _ in starts))


def unit_by_unit_cost(price: TieredPrice, used: int) -> Fraction:
    """Charge unit-second by unit-second, in currency units × 10⁹."""
    if price.model == "package":
        whole, rest = divmod(used, price.starts[0])
        return Fraction(whole * price.prices[0]) + min(
            Fraction(rest * price.nano_per_hour, HOURS), Fraction(price.prices[0])
        )
    tiers = [(0, price.nano_per_hour), *zip(price.starts, price.prices, strict=True)]

    def at(second: int) -> int:
        return [nano for start, nano in tiers if start <= second][-1]

    if price.model == "volume":
        return Fraction(used * at(used), HOURS)
    return sum((Fraction(at(second), HOURS) for second in range(used)), Fraction(0))


@given(price=tiered_prices(), used=st.integers(0, 3000), scale=st.integers(1, 40))
def test_the_tier_reduction_equals_a_unit_by_unit_calculation(price: TieredPrice, used: int, scale: int) -> None:
    small = TieredPrice(
        price.model,
        price.nano_per_hour,
        tuple(sorted({max(1, start // scale) for start in price.starts})),
        price.prices[: len({max(1, start // scale) for start in price.starts})],
    ) if price.model != "package" else price  # fmt: skip
    savings = small.savings(0, used, total=used)
    assert Fraction(used * small.nano_per_hour - savings, HOURS) == unit_by_unit_cost(small, used)


@given(price=tiered_prices(), cuts=st.lists(st.integers(0, 3 * 10**5), min_size=2, max_size=8))
def test_splitting_usage_does_not_change_the_tier_reduction(price: TieredPrice, cuts: list[int]) -> None:
    points = sorted({0, *cuts})
    total = points[-1]
    parts = [price.savings(a, b, total=total) for a, b in pairwise(points)]
    assert sum(parts) == price.savings(0, total, total=total)
    assert all(0 <= part <= (b - a) * price.nano_per_hour
               for part, (a, b) in zip(parts, pairwise(points), strict=True)
               ) or price.model == "package"  # fmt: skip
    assert all(part >= 0 for part in parts)


@given(price=tiered_prices(("graduated", "package")), used=st.integers(0, 3 * 10**5), more=st.integers(0, 10**5))
def test_more_usage_never_costs_less(price: TieredPrice, used: int, more: int) -> None:
    def cost(many: int) -> int:
        return many * price.nano_per_hour - price.savings(0, many, total=many)

    assert 0 <= cost(used) <= cost(used + more) <= (used + more) * price.nano_per_hour


def test_b23_usage_at_tier_boundaries_belongs_to_exactly_one_tier() -> None:
    price = TieredPrice("graduated", 1000, (5 * HOURS, 6 * HOURS), (600, 400))
    used = 5 * HOURS + HOURS // 2  # 5.5 hours: tiers of 0 to 5 and of 6 on would lose half an hour
    assert used * 1000 - price.savings(0, used, total=used) == 5 * HOURS * 1000 + HOURS // 2 * 600
    for at in (5 * HOURS - 1, 5 * HOURS, 5 * HOURS + 1, 6 * HOURS - 1, 6 * HOURS):
        second = 1000 - price.savings(at, at + 1, total=at + 1)
        assert second == (1000 if at < 5 * HOURS else 600 if at < 6 * HOURS else 400)


def test_a_volume_tier_applies_from_its_first_second() -> None:
    price = TieredPrice("volume", 1000, (10,), (500,))
    assert [used * 1000 - price.savings(0, used, total=used) for used in (9, 10, 11)] == [9000, 5000, 5500]


def test_a_partial_package_costs_its_hours_but_at_most_one_package() -> None:
    price = TieredPrice("package", 1000 * HOUR, (100,), (80_000,))  # 100 s for what 80 s cost
    cost = [used * price.nano_per_hour - price.savings(0, used, total=used) for used in (0, 50, 80, 99, 100, 150, 200)]
    assert [each // (1000 * HOUR) for each in cost] == [0, 50, 80, 80, 80, 130, 160]


@pytest.mark.parametrize(
    ("model", "nano", "starts", "costs"),
    [
        ("graduated", 10, (), ()),
        ("graduated", 10, (1, 2), (5,)),
        ("graduated", 10, (0,), (5,)),
        ("graduated", 10, (5, 5), (5, 4)),
        ("graduated", 10, (5, 4), (5, 4)),
        ("graduated", 10, (5,), (-1,)),
        ("graduated", 10, (5,), (11,)),
        ("volume", 10, (5,), (11,)),
        ("package", 10, (5, 6), (0, 0)),
        ("package", 3600, (5,), (6,)),
    ],
)
def test_invalid_tiers_are_refused(model: str, nano: int, starts: Any, costs: Any) -> None:
    with pytest.raises(ValueError, match=r"tier|price|package"):
        TieredPrice(model, nano, starts, costs)


def test_usage_outside_the_monthly_total_is_refused() -> None:
    price = TieredPrice("volume", 10, (5,), (1,))
    for since, until, total in ((-1, 2, 3), (2, 1, 3), (0, 4, 3)):
        with pytest.raises(ValueError, match="is not within"):
            price.savings(since, until, total=total)


def test_tier_starts_are_derived_from_contiguous_tiers() -> None:
    assert tier_starts([(0, 100), (100, 500), (500, None)]) == (100, 500)
    assert tier_starts([(0, None), (100, None)]) == (100,)


@pytest.mark.parametrize(
    ("tiers", "why"),
    [
        ([], "begins at 0"),
        ([(1, None)], "begins at 0"),
        ([(0, 5), (6, None)], "leave a gap"),
        ([(0, 7), (6, None)], "overlap"),
        ([(0, None), (0, None)], "in order"),
        ([(0, 9), (9, 5), (5, None)], "in order"),
        ([(0, 9), (9, 10)], "has no end"),
    ],
)
def test_tiers_with_a_gap_an_overlap_or_out_of_order_are_refused(tiers: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        tier_starts(tiers)


@given(tiered_prices(("graduated",)), st.integers(0, 10**6), st.integers(0, 10**3))
def test_no_part_of_a_capped_price_costs_more(price: TieredPrice, most: int, used: int) -> None:
    capped = price.capped(most)
    assert capped is not None
    assert [capped.price_at(second) for second in range(used)] == [
        min(most, price.price_at(second)) for second in range(used)
    ]


@given(tiered_prices(("package",)), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_package_dearer_than_its_capped_hours_saves_nothing(price: TieredPrice, most: int, used: int) -> None:
    capped = price.capped(most)
    if capped is None:
        assert price.prices[0] * HOUR > price.starts[0] * most
    else:
        assert 0 <= capped.savings(0, used, total=used) <= used * most
