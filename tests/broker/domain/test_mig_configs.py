"""What a node says about itself is read with care, and what it is told has one name."""

from typing import Any

import pytest

from broker.domain.cuts import WHOLE, Cut
from broker.domain.mig_configs import (
    alias_of,
    common,
    config_of,
    most_per_card,
    name_of,
    profile_of,
    resource_of,
    slots_of,
)

ONES, MIXED = Cut.of(["1g.10gb"] * 7), Cut.of(["3g.40gb", "1g.10gb", "1g.10gb"])


def test_a_node_says_which_profiles_it_knows_and_how_many() -> None:
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
    assert most_per_card(document) == {"1g.10gb": 7, "3g.40gb": 1, "7g.80gb": 1}


@pytest.mark.parametrize(
    "document", [{}, {"mig-configs": []}, {"mig-configs": {"x": [{"mig-devices": {"1g.10gb": "all"}}]}}]
)
def test_what_is_no_such_document_is_refused_in_words(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not what mig-manager writes|is no number"):
        most_per_card(document)


def test_entries_that_mean_nothing_to_us_are_passed_over() -> None:
    assert most_per_card({"mig-configs": {"odd": ["all"]}}) == {}


def test_nodes_together_can_have_what_each_of_them_can() -> None:
    assert common([None, {"1g.10gb": 7, "3g.40gb": 2}, {"1g.10gb": 4}]) == {"1g.10gb": 4, "3g.40gb": 0}
    assert common([None, None]) is None


def test_a_layout_is_written_with_an_entry_for_each_way_of_cutting() -> None:
    assert config_of({0: ONES, 1: WHOLE, 2: ONES, 3: MIXED}) == [
        {"devices": [3], "mig-enabled": True, "mig-devices": {"1g.10gb": 2, "3g.40gb": 1}},
        {"devices": [0, 2], "mig-enabled": True, "mig-devices": {"1g.10gb": 7}},
        {"devices": [1], "mig-enabled": False},
    ]


def test_one_layout_has_one_name_and_one_other_name() -> None:
    name = name_of({0: ONES, 1: WHOLE})
    assert name == name_of({1: WHOLE, 0: ONES})
    assert len({name, name_of({0: WHOLE, 1: ONES}), alias_of(name)}) == 3
    assert len(alias_of(name)) <= 63  # a label's value


def test_what_a_layout_offers_is_the_sum_of_its_cards() -> None:
    assert slots_of([ONES, MIXED, WHOLE]) == {"1g.10gb": 9, "3g.40gb": 1, "card": 1}


@pytest.mark.parametrize("profile", ["card", "1g.10gb", "1g.10gb+me", "2g.48gb+me.all", "7g.80gb"])
def test_the_name_of_what_is_offered_can_be_read_back(profile: str) -> None:
    assert profile_of(resource_of(profile)) == profile


@pytest.mark.parametrize(
    "resource", ["cpu", "nvidia.com/gpu.shared", "nvidia.com/mig-", "x/nvidia.com/mig-1g.10gb"]
)
def test_what_is_no_slice_has_no_profile(resource: str) -> None:
    assert profile_of(resource) is None
