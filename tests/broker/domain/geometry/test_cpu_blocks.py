"""CPU blocks: how many a node makes, and what fits into them."""

import pytest

from broker.domain.geometry.cpu_blocks import (
    CPU_MODEL,
    UNITS_PER_BLOCK,
    blocks_of_node,
    profiles_in_block,
    units_of_node,
)
from broker.domain.geometry.host_resources import HostResources
from broker.domain.geometry.quota_units import quota_milli_units
from broker.domain.lifecycle.states import Isolation


@pytest.mark.parametrize(
    ("cpu_milli", "units", "blocks"),
    [(0, 0, ()), (1_999, 0, ()), (2_000, 1, (1,)), (7_600, 3, (3,)), (16_000, 8, (8,)), (91_200, 45, (8,) * 5 + (5,))],
)
def test_a_node_makes_whole_units_only(cpu_milli: int, units: int, blocks: tuple[int, ...]) -> None:
    node = HostResources(cpu_milli=cpu_milli)
    assert units_of_node(node) == units
    assert blocks_of_node(node) == blocks


def test_a_full_block_offers_every_size_and_a_smaller_one_what_fits() -> None:
    assert profiles_in_block(UNITS_PER_BLOCK) is None
    smaller = profiles_in_block(3)
    assert smaller is not None
    assert smaller.starts() == {"2vcpu": [0, 1, 2], "4vcpu": [0]}


def test_cpus_are_sold_in_their_sizes_only_and_take_no_gpu_quota() -> None:
    assert [each.name for each in CPU_MODEL.profiles_with(Isolation.HARDWARE)] == ["2vcpu", "4vcpu", "8vcpu", "16vcpu"]
    assert [CPU_MODEL.profiles_with(how) for how in (Isolation.DEVICE, Isolation.SOFT, Isolation.NONE)] == [()] * 3
    assert {quota_milli_units(each, CPU_MODEL) for each in CPU_MODEL.profiles} == {0}
