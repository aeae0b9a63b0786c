"""What nodes have for leases, in the forms in which vendors' nodes report it."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from broker.domain.geometry.host_resources import UNKNOWN, HostResources
from broker.provisioners.kubernetes.client.objects import ClusterNode, FullObjectMeta, NodeStatus
from broker.provisioners.kubernetes.drivers.discovered_inventory import ForeignNodeUsage
from broker.provisioners.kubernetes.drivers.node_resources import node_resources, resources_left

VENDORS = Path(__file__).parents[3] / "vendors" / "node_labels.jsonl"
SAMPLES = {each["case"]: each for each in map(json.loads, VENDORS.read_text().splitlines())}


def node(**allocatable: str) -> ClusterNode:
    amounts = {name.replace("_", "-"): amount for name, amount in allocatable.items()}
    return ClusterNode(metadata=FullObjectMeta(name="n1"), status=NodeStatus(allocatable=amounts))


@pytest.mark.parametrize(
    ("allocatable", "left"),
    [
        ({"cpu": "4", "memory": "16Gi"}, HostResources(3500, 15_360, 0)),
        ({"cpu": "96", "memory": "1Ti"}, HostResources(91_200, 996_147, 0)),
        ({"cpu": "95690m", "memory": "1176300008Ki"}, HostResources(90_905, 1_091_293, 0)),
        ({"cpu": "3920m", "memory": "14719096Ki"}, HostResources(3420, 13_350, 0)),
        ({"cpu": "2", "memory": "8G", "ephemeral_storage": "18242267924"}, HostResources(1500, 6605, 15_349)),
        ({"cpu": "8", "memory": "32Gi", "ephemeral_storage": "4Ti"}, HostResources(7500, 31_129, 3_774_873)),
        ({"cpu": "0.4", "memory": "1e9"}, HostResources(1, 1, 0)),
        ({"cpu": "many"}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)
def test_a_margin_is_kept_for_system_pods(allocatable: dict[str, str], left: HostResources) -> None:
    assert node_resources(node(**allocatable)) == left


@pytest.mark.parametrize("case", sorted(SAMPLES))
def test_vendors_nodes_have_less_for_leases_than_they_can_allocate(case: str) -> None:
    there = SAMPLES[case]["allocatable"]
    found = node_resources(ClusterNode(metadata=FullObjectMeta(name=case), status=NodeStatus(allocatable=there)))
    assert (found.cpu_milli > 0, found.memory_mib > 0) == ("cpu" in there, "memory" in there)


@pytest.mark.parametrize("case", ["l4-eks-karpenter-no-gfd", "a100-40-eks-p4d-spot-young"])
def test_all_gpus_of_a_vendors_node_can_be_leased(case: str) -> None:
    sample = SAMPLES[case]
    gpus, cpu = int(sample["allocatable"]["nvidia.com/gpu"]), sample["allocatable"]["cpu"]
    made = node(cpu=cpu, memory=sample["allocatable"]["memory"])
    each = node_resources(made).share(1, 1, gpus=gpus).rounded_down()
    assert 0 < each.times(gpus).cpu_milli <= int(cpu.removesuffix("m"))


MACHINE = {"cpu": "96", "memory": "1Ti", "ephemeral_storage": "4Ti"}
GIB = 2**30


def used(cpu: str, memory_gib: int = 0, scratch_gib: int = 0) -> dict[str, Fraction]:
    return {
        "cpu": Fraction(cpu),
        "memory": Fraction(memory_gib * GIB),
        "ephemeral-storage": Fraction(scratch_gib * GIB),
    }


def test_daemon_sets_within_the_margin_change_nothing() -> None:
    machine = node(**MACHINE)
    assert node_resources(machine, ForeignNodeUsage(daemon_sets=used("4.7", 50, 400))) == node_resources(machine)


def test_what_daemon_sets_request_beyond_the_margin_is_not_sold() -> None:
    found = node_resources(node(**MACHINE), ForeignNodeUsage(daemon_sets=used("9.5", 100, 500)))
    assert found == HostResources(86_500, (1024 - 100) * 1024, (4096 - 500) * 1024)


def test_ordinary_pods_leave_the_amounts_and_reduce_what_is_left() -> None:
    machine, usage = node(**MACHINE), ForeignNodeUsage(daemon_sets=used("2"), ordinary=used("60", 100))
    assert node_resources(machine, usage) == node_resources(machine)
    left = resources_left(machine, usage)
    assert (left.cpu_milli, left.memory_mib) == (34_000, 924 * 1024)
    assert left.scratch_mib == node_resources(machine).scratch_mib


def test_a_small_ordinary_pod_fits_within_the_margin() -> None:
    machine = node(**MACHINE)
    dns = ForeignNodeUsage(daemon_sets=used("2"), ordinary=used("0.1", 1))
    assert resources_left(machine, dns) == node_resources(machine)


def test_a_node_whose_daemon_sets_request_everything_has_almost_nothing_left() -> None:
    found = node_resources(node(**MACHINE), ForeignNodeUsage(daemon_sets=used("200", 2000, 5000)))
    assert found == HostResources(1, 1, 1)
