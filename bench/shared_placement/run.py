"""One run: requests arrive and stay, and what fits nowhere is refused for good."""

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

from bench.shared_placement import trace
from bench.shared_placement.rules import Anywhere
from broker.domain.placement.shares.node_capacity import HeldShare
from broker.domain.placement.shares.shared_nodes import SharedNodes, ShareRule


@dataclass(frozen=True)
class Outcome:
    """Result of one run, shares of the capacity in percent."""

    rule: str
    seed: int
    at_capacity: float  # held when as much had been asked for as there is
    at_end: float
    decisions: int
    seconds: float


def run(name: str, seed: int, rule_of: Callable[[], ShareRule] | None) -> Outcome:
    """Fill the cluster by a rule; without one, at random."""
    node_capacities, kinds = trace.node_capacities(), list(trace.request_counts())
    capacity = trace.capacity_of(node_capacities)
    began = process_time()
    nodes = SharedNodes(node_capacities, kinds, rule_of()) if rule_of else None
    rng = Anywhere(seed)
    came = held = decisions = 0
    at_capacity: int | None = None
    for kind in trace.arrivals(seed, capacity):
        request = kinds[kind]
        came, decisions = came + request.total_share, decisions + 1
        if nodes:
            got = nodes.reserve_cheapest(kind)
        elif chosen := rng.choose(node_capacities, request):
            got = HeldShare(*chosen)
            node_capacities[got.node].reserve(request, got.gpus)
        else:
            got = None
        held += request.total_share if got else 0
        if at_capacity is None and came >= capacity:
            at_capacity = held
    part = 100 / capacity
    return Outcome(name, seed, part * (at_capacity or held), part * held, decisions, process_time() - began)
