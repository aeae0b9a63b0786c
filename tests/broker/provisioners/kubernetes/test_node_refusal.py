"""Nodes that take no new pods, and what operators are told to do about it."""

from typing import Any

import msgspec
import pytest

from broker.provisioners.kubernetes.client.objects import ClusterNode
from broker.provisioners.kubernetes.observe.node_refusal import MAX_LENGTH, node_refusal
from broker.provisioners.kubernetes.tolerations import parse_tolerations

READY = [{"type": "Ready", "status": "True"}]


def refusal(*taints: str, tolerated: str = "", conditions: list[dict[str, str]] = READY, **meta: Any) -> str:
    """Return the refusal of a node with taints, each written as key=value:effect."""
    spec = {"taints": [_taint(text) for text in taints]}
    body = {"metadata": {"name": "n1", **meta}, "spec": spec, "status": {"conditions": conditions}}
    return node_refusal(msgspec.convert(body, ClusterNode, strict=False), parse_tolerations(tolerated))


def _taint(text: str) -> dict[str, str]:
    key, _, effect = text.partition(":")
    name, _, value = key.partition("=")
    return {"key": name, "value": value, "effect": effect}


def test_a_ready_node_without_taints_takes_pods() -> None:
    assert refusal() == ""


def test_a_node_that_is_being_deleted_takes_none() -> None:
    assert refusal(deletionTimestamp="2026-11-27T10:00:00Z").startswith("It is being deleted from its cluster")


def test_a_node_whose_kubelet_never_reported_takes_none() -> None:
    assert refusal(conditions=[]) == "It is not ready: its kubelet has not reported yet"


@pytest.mark.parametrize(
    ("taint", "advice"),
    [
        ("node.kubernetes.io/disk-pressure:NoSchedule", "disk is almost full"),
        ("node.kubernetes.io/memory-pressure:NoSchedule", "short of memory"),
        ("node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", "declared the node as failed"),
        ("karpenter.sh/disrupted:NoSchedule", "about to be removed"),
        ("ToBeDeletedByClusterAutoscaler=1732701600:NoSchedule", "about to be removed"),
        ("node.cilium.io/agent-not-ready:NoSchedule", "still starting"),
    ],
)
def test_taints_of_controllers_are_explained_and_not_to_be_tolerated(taint: str, advice: str) -> None:
    why = refusal("sku=gpu:NoSchedule", taint)
    assert advice in why
    assert taint in why
    assert "tolerations" not in why


def test_a_taint_of_an_administrator_is_to_be_removed_or_tolerated() -> None:
    why = refusal("sku=gpu:NoSchedule")
    assert why == "It has the taint sku=gpu:NoSchedule; remove it, or add it to the cluster's tolerations."
    assert refusal("sku=gpu:NoSchedule", tolerated="sku=gpu") == ""


def test_advice_is_complete_however_long_the_taints_are() -> None:
    why = refusal(*[f"example.org/{'x' * 60}{number}:NoSchedule" for number in range(9)])
    assert len(why) <= MAX_LENGTH
    assert why.endswith("add it to the cluster's tolerations.")
