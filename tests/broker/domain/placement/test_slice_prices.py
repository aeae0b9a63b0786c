"""Prices of slices from the dual of the packing problem."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.covering_lp import marginal_gpus, maximal_layouts
from broker.domain.placement.costs.state_tables import build_state_table
from tests.broker.domain.fleet import A30, H100, PRO_6000, plain
from tests.broker.domain.placement.naive_pool import all_layouts

PROFILES = plain(H100)
SMALL = plain(A30)
EIGHTHS = [1 / 8, 2 / 8, 2 / 8, 4 / 8, 4 / 8, 1]


@pytest.mark.parametrize("model", [H100, A30, PRO_6000], ids=lambda m: m.name)
def test_maximal_layouts_match_brute_force(
    model: object,
) -> None:
    profiles = plain(model)  # type: ignore[arg-type]
    every = {tuple(sum(1 for p, _ in cut if p == n) for n in range(len(profiles))) for cut in all_layouts(profiles)}
    best = {
        one
        for one in every
        if not any(other != one and all(a <= b for a, b in zip(one, other, strict=True)) for other in every)
    }
    assert set(maximal_layouts(build_state_table(profiles, model.grid))) == best  # type: ignore[attr-defined]


def vertices(rows: list[tuple[int, ...]]) -> list[tuple[Fraction, ...]]:
    """Every corner of the polyhedron in three dimensions, by Cramer's rule."""
    planes = [(*row, 1) for row in rows] + [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)]
    found = []
    for three in combinations(planes, 3):
        whole = _det([p[:3] for p in three])
        if whole:
            point = tuple(Fraction(_det([(*p[:n], p[3], *p[n + 1 : 3]) for p in three]), whole) for n in range(3))
            inside = all(sum(a * y for a, y in zip(row, point, strict=True)) <= 1 for row in rows)
            if min(point) >= 0 and inside:
                found.append(point)
    return found


def _det(m: list[tuple[int, ...]]) -> int:
    (a, b, c), (d, e, f), (g, h, i) = m
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


CUTS = maximal_layouts(build_state_table(SMALL, 4))
CORNERS = vertices(list(CUTS))


@settings(max_examples=40)
@given(st.lists(st.integers(0, 1000), min_size=3, max_size=3))
def test_marginal_gpus_are_an_optimal_vertex_of_the_dual(demand: list[int]) -> None:
    found = marginal_gpus(CUTS, demand)
    assert min(found) >= 0
    assert max(sum(n * y for n, y in zip(cut, found, strict=True)) for cut in CUTS) <= 1 + 1e-9
    best = max(sum(d * y for d, y in zip(demand, corner, strict=True)) for corner in CORNERS)
    assert sum(d * y for d, y in zip(demand, found, strict=True)) == pytest.approx(float(best))


def test_default_prices_are_proportional_to_memory_plus_a_little_compute() -> None:
    worth = slice_prices.default_prices(PROFILES, 8)
    assert worth == (7008, 14008, 14016, 28024, 28032, 56056)
    assert slice_prices.default_prices((), 8) == ()


@pytest.mark.parametrize(
    "mix", [[1, 1, 1, 1, 1, 1], [0.3, 0.25, 0.2, 0.1, 0.1, 0.05], [0.3, 0.15, 0.05, 0.05, 0.15, 0.3]]
)
def test_dual_prices_of_small_slice_mixes_are_memory_eighths(mix: list[float]) -> None:
    assert slice_prices.dual_prices(PROFILES, 8, mix) == pytest.approx(slice_prices.default_prices(PROFILES, 8))


def test_small_slices_cost_almost_nothing_where_large_ones_dominate() -> None:
    worth = slice_prices.dual_prices(PROFILES, 8, [106, 0, 207, 390, 1044, 5242])
    assert worth == pytest.approx((8, 8, 16, 24, 56_032, 56_056))


def test_a_profile_without_demand_is_worth_its_compute_only() -> None:
    assert slice_prices.dual_prices(PROFILES, 8, [0, 0, 0, 0, 0, 3]) == pytest.approx((8, 8, 16, 24, 32, 56_056))
    assert slice_prices.dual_prices(PROFILES, 8, [0] * 6) == (8, 8, 16, 24, 32, 56)


def test_averaged_dual_prices_stay_within_the_price_of_one_gpu() -> None:
    numbers = iter([0.1, 0.9, 0.4, 0.6] * 1000)
    mix = [0.3, 0.15, 0.05, 0.05, 0.15, 0.3]
    worth = slice_prices.dual_prices(PROFILES, 8, mix, rng=lambda: next(numbers), samples=10)
    assert worth[-1] == pytest.approx(56_056)
    assert all(0 < each <= 56_056 for each in worth)
    # Still the price of a GPU: the cuts that are used at the best covering cost just one.
    assert worth[3] + worth[4] == pytest.approx(56_000 + 56)


@pytest.mark.parametrize("demand", [[1, 2], [1, 1, 1, 1, 1, -1]])
def test_a_demand_that_does_not_match_the_profiles_is_refused(demand: list[float]) -> None:
    with pytest.raises(ValueError, match="of at least 0 for each of 6 profiles"):
        slice_prices.dual_prices(PROFILES, 8, demand)
