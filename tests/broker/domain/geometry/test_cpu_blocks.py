"""CPU blocks: how many a node makes, and what fits into them."""

import pytest

from broker.domain.geometry.cpu_blocks import (
    CPU_MODEL,
    UNITS_PER_BLOCK,
    blocks_of_node,
    device_name,
    profiles_in_block,
    share_of_units,
    units_in_block,
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


def test_the_units_of_a_block_follow_from_what_it_publishes() -> None:
    smaller = profiles_in_block(5)
    assert smaller is not None
    assert (units_in_block(None), units_in_block(smaller.starts()), units_in_block({})) == (8, 5, 0)


def test_a_share_brings_two_vcpus_a_unit_and_never_more() -> None:
    node = HostResources(cpu_milli=7600, memory_mib=12_000)
    assert share_of_units(node, 2, 3) == HostResources(4000, 8000)
    assert share_of_units(HostResources(cpu_milli=3000), 2, 2) == HostResources(3000)


def test_a_block_is_not_called_a_gpu() -> None:
    assert (device_name("CPU", 1), device_name("H100-80GB", 1)) == ("CPU block 1", "GPU 1")
