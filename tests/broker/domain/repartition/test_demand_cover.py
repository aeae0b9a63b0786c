"""Layouts that serve a demand on the fewest possible GPUs."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.profiles import WHOLE_GPU, Placement
from broker.domain.placement.costs.minimum_gpus import min_gpus
from broker.domain.placement.costs.state_tables import build_state_table
from broker.domain.repartition.demand_cover import cover_demand
from broker.domain.repartition.gpu_layouts import WHOLE_GPU_LAYOUT, GpuLayout, LayoutCatalogue
from broker.domain.repartition.layout_plans import CurrentGpu, CurrentNode, LayoutPlanRules, plan_node_layouts
from broker.domain.repartition.layout_search import best_gpu_layouts
from broker.domain.repartition.served_demand import ServedDemand
from tests.broker.domain.fleet import A30, H100, PRO_6000, TWO, plain
from tests.broker.domain.repartition.exhaustive_search import exactly
from tests.broker.domain.repartition.first_planner import gpu_by_gpu

CATALOGUES = {model.name: LayoutCatalogue(model, plain(model)) for model in (H100, A30, PRO_6000)}
CATALOGUE = CATALOGUES[H100.name]
ONES, THREES = GpuLayout.from_names(["1g.10gb"] * 7), GpuLayout.from_names(["3g.40gb"] * 2)


def exact_minimum_gpus(catalogue: LayoutCatalogue, demand: dict[str, int]) -> int:
    """The exact minimum over all profiles of the model."""
    profiles = (*catalogue.profiles, catalogue.model.whole)
    table = build_state_table(profiles, catalogue.model.grid)
    return min_gpus(table, [demand.get(profile.name, 0) // 1000 for profile in profiles])


@st.composite
def demands(draw: st.DrawFn, unit: int = 1000, most: int = 30) -> tuple[LayoutCatalogue, dict[str, int]]:
    catalogue = draw(st.sampled_from([CATALOGUE, CATALOGUE, *CATALOGUES.values()]))
    names = [*(profile.name for profile in catalogue.profiles), WHOLE_GPU]
    counts = draw(st.dictionaries(st.sampled_from(names), st.integers(1, most), min_size=1))
    return catalogue, {name: count * unit for name, count in counts.items()}


@settings(max_examples=150, deadline=None)
@given(demands(), st.data())
@pytest.mark.deep
def test_a_demand_uses_exactly_the_minimum_of_gpus(
    asks: tuple[LayoutCatalogue, dict[str, int]], data: st.DataObject
) -> None:
    catalogue, demand = asks
    gpus = exact_minimum_gpus(catalogue, demand)
    now = data.draw(st.lists(st.sampled_from(catalogue.layouts), min_size=gpus, max_size=gpus))
    filling = ServedDemand(catalogue, demand)
    chosen = cover_demand(filling, now, filling.total_slices([]))
    assert chosen is not None
    assert len(chosen) == gpus
    assert all(have * 1000 >= milli for have, milli in zip(filling.total_slices(chosen), filling.demand, strict=True))


@settings(max_examples=60, deadline=None)
@given(demands(most=9), st.data())
@pytest.mark.deep
def test_the_planner_serves_the_demand_on_the_minimum_of_gpus(
    asks: tuple[LayoutCatalogue, dict[str, int]], data: st.DataObject
) -> None:
    catalogue, demand = asks
    gpus = exact_minimum_gpus(catalogue, demand)
    cuts = data.draw(st.lists(st.sampled_from(catalogue.layouts), min_size=gpus, max_size=gpus))
    node = CurrentNode("n", tuple(CurrentGpu(index, cut) for index, cut in enumerate(cuts)))
    after = dict(enumerate(cuts))
    for each in plan_node_layouts([node], demand, catalogue, LayoutPlanRules(min_gain_milli=1)):
        after |= dict(each.layouts)
    filling = ServedDemand(catalogue, demand)
    supply = filling.total_slices(after.values())
    assert all(have * 1000 >= milli for have, milli in zip(supply, filling.demand, strict=True))


@settings(max_examples=60, deadline=None)
@given(demands(unit=500, most=9), st.data())
def test_the_planner_never_serves_less_than_gpu_by_gpu_filling(
    asks: tuple[LayoutCatalogue, dict[str, int]], data: st.DataObject
) -> None:
    catalogue, demand = asks
    now = data.draw(st.lists(st.sampled_from(catalogue.layouts), min_size=1, max_size=5))
    filling = ServedDemand(catalogue, demand)
    served = filling.served_value(filling.total_slices(best_gpu_layouts(filling, now, [])))
    assert served >= filling.served_value(filling.total_slices(gpu_by_gpu(filling, now)))


def test_the_planner_serves_more_than_gpu_by_gpu_filling_where_gpus_are_short() -> None:
    demand = {"1g.10gb": 4500, "1g.20gb": 2000, "3g.40gb": 6000, "4g.40gb": 2500}
    filling, now = ServedDemand(CATALOGUE, demand), [WHOLE_GPU_LAYOUT] * 3
    served = filling.served_value(filling.total_slices(best_gpu_layouts(filling, now, [])))
    assert served == exactly(filling, 3)
    assert served > filling.served_value(filling.total_slices(gpu_by_gpu(filling, now)))


def test_gpus_with_a_useful_layout_keep_it() -> None:
    filling = ServedDemand(CATALOGUE, {"1g.10gb": 14_000, "3g.40gb": 4000})
    now = [THREES, WHOLE_GPU_LAYOUT, ONES, WHOLE_GPU_LAYOUT, WHOLE_GPU_LAYOUT]
    chosen = cover_demand(filling, now, filling.total_slices([]))
    assert chosen is not None
    assert Counter(now) - Counter(chosen) == Counter({WHOLE_GPU_LAYOUT: 2})


def test_demand_served_by_other_gpus_is_not_served_twice() -> None:
    filling = ServedDemand(CATALOGUE, {"1g.10gb": 14_000, "3g.40gb": 2000})
    assert cover_demand(filling, [WHOLE_GPU_LAYOUT], filling.total_slices([ONES, ONES])) == [THREES]


def test_running_demand_is_covered_before_recent_demand() -> None:
    filling = ServedDemand(CATALOGUE, {"3g.40gb": 2000, "whole-gpu": 500})
    assert cover_demand(filling, [WHOLE_GPU_LAYOUT], filling.total_slices([])) == [THREES]


def test_profiles_without_a_closed_form_use_the_other_planners() -> None:
    odd = replace(TWO, name="2g.odd", placements=(Placement(1, 2), Placement(4, 2)))
    filling = ServedDemand(LayoutCatalogue(H100, [odd]), {"2g.odd": 2000})
    assert cover_demand(filling, [WHOLE_GPU_LAYOUT], filling.total_slices([])) is None
    assert best_gpu_layouts(filling, [WHOLE_GPU_LAYOUT], []) == (GpuLayout.from_names(["2g.odd"] * 2),)


def test_a_node_with_limited_profiles_uses_the_other_planners() -> None:
    few = LayoutCatalogue(H100, plain(H100), {"1g.10gb": 2})
    filling = ServedDemand(few, {"1g.10gb": 7000})
    assert cover_demand(filling, [WHOLE_GPU_LAYOUT], filling.total_slices([])) is None
    assert best_gpu_layouts(filling, [WHOLE_GPU_LAYOUT], []) == (GpuLayout.from_names(["1g.10gb"] * 2),)


@pytest.mark.parametrize("gpus", [1, 2, 3])
def test_the_most_valuable_demand_is_served_if_gpus_are_too_few(gpus: int) -> None:
    demand = {"1g.10gb": 9000, "2g.20gb": 4000, "3g.40gb": 3000, "whole-gpu": 1000}
    filling = ServedDemand(CATALOGUE, demand)
    chosen = best_gpu_layouts(filling, [ONES] * gpus, [])
    assert filling.served_value(filling.total_slices(chosen)) == exactly(filling, gpus)
