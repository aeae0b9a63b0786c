"""Capacity available to new requests: what fits without GPUs reserved for older ones."""

from collections.abc import Iterable
from datetime import datetime

from broker.models import Offering
from broker.services.placement import available_capacity
from broker.services.placement.available_capacity import FoundSlots, pool_of
from broker.services.queue.starvation_guard import reserved_gpus


def count_open_capacity(offerings: Iterable[Offering], *, now: datetime, cluster: str = "") -> dict[str, int]:
    """Return how many of each offering would be placed now; see `available_capacity.count_available`."""
    listed = list(offerings)
    reserved = reserved_gpus({pool_of(each) for each in listed}, now=now)
    return available_capacity.count_available(listed, cluster=cluster, reserved=reserved)


def preview_open_placement(
    offering: Offering,
    *,
    now: datetime,
    quantity: int = 1,
    same_node: bool = False,
    topology: str = "",
    cluster: str = "",
) -> FoundSlots | None:
    """Return where a request would be placed if it need not wait; see `available_capacity.preview_placement`."""
    return available_capacity.preview_placement(
        offering,
        quantity=quantity,
        same_node=same_node,
        topology=topology,
        cluster=cluster,
        reserved=reserved_gpus({pool_of(offering)}, now=now),
    )
