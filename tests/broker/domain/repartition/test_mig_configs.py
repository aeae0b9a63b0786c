"""Parsing of MIG configurations, and names of layouts."""

from typing import Any

import pytest

from broker.domain.repartition.gpu_layouts import WHOLE_GPU_LAYOUT, GpuLayout
from broker.domain.repartition.mig_configs import (
    common_limits,
    layout_alias,
    layout_name,
    max_slices_per_gpu,
    mig_config,
    profile_of_resource,
    slices_offered,
)
from tests.broker.domain.fleet import resource_name

ONES, MIXED = GpuLayout.from_names(["1g.10gb"] * 7), GpuLayout.from_names(["3g.40gb", "1g.10gb", "1g.10gb"])


def test_a_mig_config_document_gives_the_maximum_slices_per_profile() -> None:
    document = {
        "version": "v1",
        "mig-configs": {
            "all-disabled": [{"devices": "all", "mig-enabled": False}],
            "all-1g.10gb": [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}],
            "all-balanced": [
                {"device-filter": "0x233010DE", "devices": "all", "mig-devices": {"1g.10gb": 2, "3g.40gb": 1}}
            ],
            "alone": {"devices": "all", "mig-devices": {"7g.80gb": 1, "2g.20gb": 0}},
        },
    }
    assert max_slices_per_gpu(document) == {"1g.10gb": 7, "3g.40gb": 1, "7g.80gb": 1}


@pytest.mark.parametrize(
    "document", [{}, {"mig-configs": []}, {"mig-configs": {"x": [{"mig-devices": {"1g.10gb": "all"}}]}}]
)
def test_an_invalid_mig_config_document_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"mig-manager did not write it|invalid number"):
        max_slices_per_gpu(document)


def test_unknown_mig_config_entries_are_ignored() -> None:
    assert max_slices_per_gpu({"mig-configs": {"odd": ["all"]}}) == {}


def test_common_limits_are_the_minimum_over_all_nodes() -> None:
    assert common_limits([None, {"1g.10gb": 7, "3g.40gb": 2}, {"1g.10gb": 4}]) == {"1g.10gb": 4, "3g.40gb": 0}
    assert common_limits([None, None]) is None


def test_a_mig_config_has_one_entry_per_distinct_layout() -> None:
    assert mig_config({0: ONES, 1: WHOLE_GPU_LAYOUT, 2: ONES, 3: MIXED}) == [
        {"devices": [3], "mig-enabled": True, "mig-devices": {"1g.10gb": 2, "3g.40gb": 1}},
        {"devices": [0, 2], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
        {"devices": [1], "mig-enabled": False},
    ]


def test_a_layout_has_one_name_and_one_alias() -> None:
    name = layout_name({0: ONES, 1: WHOLE_GPU_LAYOUT})
    assert name == layout_name({1: WHOLE_GPU_LAYOUT, 0: ONES})
    assert len({name, layout_name({0: WHOLE_GPU_LAYOUT, 1: ONES}), layout_alias(name)}) == 3
    assert len(layout_alias(name)) <= 63  # a label's value


def test_the_slices_offered_are_the_sum_over_all_gpus() -> None:
    assert slices_offered([ONES, MIXED, WHOLE_GPU_LAYOUT]) == {"1g.10gb": 9, "3g.40gb": 1, "whole-gpu": 1}


@pytest.mark.parametrize("profile", ["whole-gpu", "1g.10gb", "1g.10gb+me", "2g.48gb+me.all", "7g.80gb"])
def test_a_resource_name_is_parsed_back_to_its_profile(profile: str) -> None:
    assert profile_of_resource(resource_name(profile)) == profile


@pytest.mark.parametrize("resource", ["cpu", "nvidia.com/gpu.shared", "nvidia.com/mig-", "x/nvidia.com/mig-1g.10gb"])
def test_other_resource_names_have_no_profile(resource: str) -> None:
    assert profile_of_resource(resource) is None
