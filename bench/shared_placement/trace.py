"""The openb cluster and its requests: openb_nodes.csv in the trace's order, openb_pods.csv by kind.

Both are counted from cluster-trace-gpu-v2023 of Alibaba (Apache-2.0): 1,213 nodes with 6,212 GPUs, 8,152
pods.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random

from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, NodeCapacity, ShareRequest

HERE = Path(__file__).parent
ARRIVED = 1.3  # of the capacity


def fill_order_by_class(makes: Mapping[int, object]) -> dict[int, float]:
    """Return each node's fill order from 0 to 1, mixing node classes evenly."""
    alike: dict[object, list[int]] = {}
    for node, make in makes.items():
        alike.setdefault(make, []).append(node)
    return {node: (at + 0.5) / len(nodes) for nodes in alike.values() for at, node in enumerate(nodes)}


def node_capacities() -> list[NodeCapacity]:
    """Return the nodes, empty."""
    makes = [
        tuple(int(row[name]) for name in ("cpu_milli", "memory_mib", "gpus"))
        for row in _rows("openb_nodes.csv")
        for _ in range(int(row["nodes"]))
    ]
    rank = fill_order_by_class(dict(enumerate(makes)))
    return [
        NodeCapacity(cpu=cpu, memory=memory, gpus=gpus, fill_order=rank[node])
        for node, (cpu, memory, gpus) in enumerate(makes)
    ]


@cache
def request_counts() -> dict[ShareRequest, int]:
    """Return how often each kind was requested."""
    found = Counter[ShareRequest]()
    for row in _rows("openb_pods.csv"):
        what = (int(row[name]) for name in ("cpu_milli", "memory_mib", "gpus", "gpu_milli"))
        found[ShareRequest(*what)] += int(row["pods"])
    return dict(found)


def arrivals(seed: int, capacity: int) -> Iterator[int]:
    """Yield requests one after the other, as numbers of their kind.

    First every pod of the trace once in random order, then random ones, until they have requested
    130 % of the capacity.
    """
    rng = Random(seed)
    takes = [request.total_share for request in request_counts()]
    pods = [kind for kind, times in enumerate(request_counts().values()) for _ in range(times)]
    first = rng.sample(pods, len(pods))
    came = 0
    while came < ARRIVED * capacity:
        kind = first.pop() if first else rng.choice(pods)
        came += takes[kind]
        yield kind


def capacity_of(nodes: list[NodeCapacity]) -> int:
    return WHOLE_MILLI * sum(len(node.free_by_gpu) for node in nodes)


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (HERE / name).open() as file:
        yield from csv.DictReader(file)
