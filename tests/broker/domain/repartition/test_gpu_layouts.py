"""Possible GPU layouts: complete and maximal."""

from itertools import combinations

import pytest

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import Geometry
from broker.domain.geometry.slice_packing import all_placements
from broker.domain.repartition.gpu_layouts import (
    WHOLE_GPU_LAYOUT,
    GpuLayout,
    LayoutCatalogue,
)
from tests.broker.domain.fleet import A30, H100, MODELS, PRO_5000, PRO_6000, plain
from tests.broker.domain.geometry.geometry_rules import geometry_faults


def layout_of_geometry(geometry: Geometry) -> GpuLayout:
    return GpuLayout.from_names(held.profile.name for held in geometry.held)


def brute_force_layouts(model: GpuModelSpec) -> set[GpuLayout]:
    """Return all maximal legal layouts, by brute force."""
    seats = all_placements(plain(model))
    legal = {
        layout_of_geometry(Geometry(frozenset(some)))
        for count in range(1, model.compute + 1)
        for some in combinations(seats, count)
        if not geometry_faults(Geometry(frozenset(some)), grid=model.grid)
    }

    def inside(cut: GpuLayout, other: GpuLayout) -> bool:
        more = dict(other.counts)
        return cut != other and all(more.get(name, 0) >= count for name, count in cut.counts)

    return {cut for cut in legal if not any(inside(cut, other) for other in legal)} | {WHOLE_GPU_LAYOUT}


@pytest.mark.parametrize("model", [A30, PRO_6000], ids=lambda model: model.name)
def test_the_layout_catalogue_matches_brute_force(model: GpuModelSpec) -> None:
    assert set(LayoutCatalogue(model, plain(model)).layouts) == brute_force_layouts(model)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_layout_is_a_legal_geometry_of_its_gpu(model: GpuModelSpec) -> None:
    catalogue = LayoutCatalogue(model, model.profiles)
    for cut in catalogue.layouts:
        geometry = catalogue.geometry_of(cut)
        assert not geometry_faults(geometry, grid=model.grid)
        assert layout_of_geometry(geometry) == cut


def test_layouts_use_only_profiles_that_the_node_supports() -> None:
    catalogue = LayoutCatalogue(H100, plain(H100), {"1g.10gb": 7, "3g.40gb": 1, "9g.90gb": 1})
    assert {name for cut in catalogue.layouts for name, _ in cut.counts} == {"1g.10gb", "3g.40gb", "whole-gpu"}
    assert max(dict(cut.counts).get("3g.40gb", 0) for cut in catalogue.layouts) == 1
    with pytest.raises(ValueError, match=r"has no 2g.20gb; its profiles: 3g.40gb, 1g.10gb"):
        catalogue.geometry_of(GpuLayout.from_names(["2g.20gb"]))
    with pytest.raises(ValueError, match=r"cannot be partitioned into 2 × 3g.40gb"):
        catalogue.geometry_of(GpuLayout.from_names(["3g.40gb", "3g.40gb"]))


def test_a_layout_larger_than_the_gpu_is_refused() -> None:
    with pytest.raises(ValueError, match=r"H100-80GB cannot be partitioned into 8 × 1g.10gb"):
        LayoutCatalogue(H100, plain(H100)).geometry_of(GpuLayout.from_names(["1g.10gb"] * 8))


def test_a_gpu_without_known_profiles_stays_whole() -> None:
    catalogue = LayoutCatalogue(PRO_5000, plain(PRO_5000), {})
    assert catalogue.layouts == (WHOLE_GPU_LAYOUT,)
    assert [held.profile.name for held in catalogue.geometry_of(WHOLE_GPU_LAYOUT).held] == ["whole-gpu"]
    with pytest.raises(ValueError, match="its profiles: no profiles"):
        catalogue.geometry_of(GpuLayout.from_names(["1g.24gb"]))


def test_a_layout_prints_its_slice_counts() -> None:
    assert str(GpuLayout.from_names(["3g.40gb", "1g.10gb", "1g.10gb"])) == "2 × 1g.10gb + 1 × 3g.40gb"
    assert str(GpuLayout.from_counts({"1g.10gb": 0})) == "nothing"
