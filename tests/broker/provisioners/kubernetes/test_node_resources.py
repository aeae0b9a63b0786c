"""What nodes have for leases, in the forms in which vendors' nodes report it."""

import json
from pathlib import Path

import pytest

from broker.domain.geometry.host_resources import UNKNOWN, HostResources
from broker.provisioners.kubernetes.client.objects import ClusterNode, FullObjectMeta, NodeStatus
from broker.provisioners.kubernetes.drivers.node_resources import node_resources

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
