"""Shares of CPU, memory and scratch, and how they are written."""

import pytest

from broker.domain.geometry.host_resources import (
    DEFAULT_OF_A_GPU,
    LEAST,
    UNKNOWN,
    HostResources,
    exceeded_fields,
    format_cpus,
    format_size,
    smallest_of,
)

NODE = HostResources(cpu_milli=90_906, memory_mib=1_091_304, scratch_mib=0)


def test_the_shares_of_all_slices_fit_on_the_node() -> None:
    whole, third = NODE.share(8, 8, gpus=8).rounded_down(), NODE.share(3, 8, gpus=8).rounded_down()
    assert whole == HostResources(11_300, 136_320, LEAST.scratch_mib)
    assert whole.times(8).cpu_milli <= NODE.cpu_milli
    assert third.times(16).memory_mib <= NODE.memory_mib


def test_an_unknown_amount_stays_unknown_and_a_known_one_stays_known() -> None:
    share = HostResources(cpu_milli=1, memory_mib=0, scratch_mib=5).share(1, 8)
    assert share == HostResources(1, 0, 1)
    assert (share.is_known, UNKNOWN.share(1, 8).is_known) == (True, False)
    assert share.or_else(DEFAULT_OF_A_GPU) == HostResources(1, DEFAULT_OF_A_GPU.memory_mib, 1)


def test_the_smallest_known_amount_of_each_kind_counts() -> None:
    assert smallest_of([HostResources(4, 0, 9), HostResources(3, 7, 0)]) == HostResources(3, 7, 9)
    assert smallest_of([]) == smallest_of([UNKNOWN]) == UNKNOWN


def test_only_known_amounts_are_exceeded() -> None:
    wanted = HostResources(12_000, 98_304, 204_800)
    assert exceeded_fields(wanted, HostResources(3400, 98_304, 0)) == ("cpu_milli",)
    assert exceeded_fields(wanted, UNKNOWN) == ()


@pytest.mark.parametrize(
    ("cpu_milli", "text"), [(12_000, "12"), (3420, "3.42"), (3429, "3.42"), (800, "0.8"), (50, "0.05")]
)
def test_cpus_have_at_most_two_decimals(cpu_milli: int, text: str) -> None:
    assert format_cpus(cpu_milli) == text


@pytest.mark.parametrize(
    ("mib", "text"), [(98_304, "96 GiB"), (13_350, "13 GiB"), (1664, "1.6 GiB"), (256, "256 MiB"), (1024, "1 GiB")]
)
def test_sizes_are_in_gib_with_at_most_one_decimal(mib: int, text: str) -> None:
    assert format_size(mib) == text
