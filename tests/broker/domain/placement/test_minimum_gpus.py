"""The minimum number of GPUs for a set of slices."""

from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.placement_policies.minimum_gpu_count import MinimumGpus
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.costs.covering_lp import maximal_layouts
from broker.domain.placement.costs.minimum_gpus import fits_eight_unit_gpus, min_gpus
from broker.domain.placement.costs.state_tables import build_state_table
from tests.broker.domain.fleet import A30, FOUR, H100, ONE, ONE_DOUBLE, PRO_6000, SEVEN, THREE, TWO, plain
from tests.broker.domain.placement.naive_pool import all_profiles

TABLES = {model.name: build_state_table(plain(model), model.grid) for model in (H100, A30, PRO_6000)}
CUTS = {name: maximal_layouts(table) for name, table in TABLES.items()}
ANYTHING = build_state_table(all_profiles(H100), 8)


@cache
def exhaustive_minimum(name: str, counts: tuple[int, ...]) -> int:
    """Return the fewest GPUs, by trying every full layout for each of them."""
    if not any(counts):
        return 0
    after = {tuple(max(n - c, 0) for n, c in zip(counts, cut, strict=True)) for cut in CUTS[name]}
    return 1 + min(exhaustive_minimum(name, each) for each in after if each != counts)


def test_the_closed_form_matches_exhaustive_search() -> None:
    cuts = maximal_layouts(build_state_table((ONE, ONE_DOUBLE, TWO, THREE, FOUR), 8))

    @cache
    def held(gpus: int, left: tuple[int, ...]) -> bool:
        if not any(left):
            return True
        return gpus > 0 and any(
            held(gpus - 1, tuple(max(n - c, 0) for n, c in zip(left, cut, strict=True))) for cut in cuts
        )

    for counts in product(range(9), range(5), range(5), range(3), range(3)):
        for gpus in (1, 2):
            assert fits_eight_unit_gpus(gpus, *counts) == held(gpus, counts), (gpus, counts)


@pytest.mark.parametrize("model", [H100, A30, PRO_6000], ids=lambda m: m.name)
@settings(max_examples=25, deadline=None)
@given(numbers=st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_the_minimum_of_gpus_matches_exhaustive_search_for_any_mix(model: GpuModelSpec, numbers: list[int]) -> None:
    table = TABLES[model.name]
    counts = tuple(numbers[: len(table.profiles)])
    assert min_gpus(table, counts) == exhaustive_minimum(model.name, counts)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 10**6), max_size=40))
def test_the_incremental_minimum_matches_a_recalculation(numbers: list[int]) -> None:
    running, live = MinimumGpus(ANYTHING), [0] * len(ANYTHING.profiles)
    for number in numbers:
        profile = number % len(live)
        if number % 3 and live[profile]:
            live[profile] -= 1
            running.remove(profile)
        else:
            live[profile] += 1
            running.add(profile)
        assert running.gpus == min_gpus(ANYTHING, live)
    for profile, count in enumerate(live):
        for _ in range(count):
            running.remove(profile)
    assert running.gpus == 0


def test_slices_of_different_isolation_need_separate_gpus() -> None:
    profiles = all_profiles(A30)
    table = build_state_table(profiles, 4)
    one_of = [int(p in (A30.profiles[0], A30.whole) or p.name == "quarter") for p in profiles]
    assert sum(one_of) == 4
    assert min_gpus(table, one_of) == 4


def test_whole_gpu_slices_need_one_gpu_each() -> None:
    assert min_gpus(build_state_table((SEVEN,), 8), [3]) == 3


def test_profiles_without_a_closed_form_are_refused_by_name() -> None:
    odd = Profile("2g.odd", 2, 2, (Placement(0, 2), Placement(1, 2)), 2, False, Isolation.HARDWARE)
    with pytest.raises(ValueError, match=r"GPUs of 8 units that hold 2g\.odd"):
        MinimumGpus(build_state_table((odd,), 8))
    with pytest.raises(ValueError, match=r"GPUs of 4 units that hold 2g\.odd"):
        min_gpus(build_state_table((odd,), 4), [1])
