"""A node as its cluster knows it, and the hands that reach it there."""

from functools import cache
from typing import cast

from django.utils.module_loading import import_string

from broker.models import Node
from broker.provisioners.hands import LayoutHands, Machine

HANDS = {
    "simulated": "broker.provisioners.simulated_hands.SimulatedHands",
    "kubernetes": "broker.provisioners.kubernetes.mig.KubernetesHands",
}


@cache
def _named(path: str) -> LayoutHands:
    return cast(LayoutHands, import_string(path)())


def hands_of(node: Node) -> LayoutHands | None:
    """Return what can cut a node; None where its cluster's provisioner cannot."""
    path = HANDS.get(node.cluster.provisioner)
    return _named(path) if path else None


def machine_of(node: Node) -> Machine:
    return Machine(node.pk, node.name, node.cluster_id)
