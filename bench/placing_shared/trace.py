"""The openb cluster and what was asked of it: openb_nodes.csv in the trace's order, openb_pods.csv by kind.

Both are counted from cluster-trace-gpu-v2023 of Alibaba (Apache-2.0): 1,213 nodes with 6,212 GPUs, 8,152 pods.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from broker.domain.placement.rooms import WHOLE, Request, Room
from broker.domain.placement.stranding import evenly

HERE = Path(__file__).parent
ARRIVED = 1.3  # of the capacity


def rooms() -> list[Room]:
    """Return the nodes, empty."""
    makes = [
        tuple(int(row[name]) for name in ("cpu_milli", "memory_mib", "gpus"))
        for row in _rows("openb_nodes.csv")
        for _ in range(int(row["nodes"]))
    ]
    rank = evenly(dict(enumerate(makes)))
    return [
        Room(cpu=cpu, memory=memory, cards=cards, rank=rank[node])
        for node, (cpu, memory, cards) in enumerate(makes)
    ]


@cache
def asked() -> dict[Request, int]:
    """Return how often what was asked for."""
    found = Counter[Request]()
    for row in _rows("openb_pods.csv"):
        what = (int(row[name]) for name in ("cpu_milli", "memory_mib", "gpus", "gpu_milli"))
        found[Request(*what)] += int(row["pods"])
    return dict(found)


def arrivals(seed: int, capacity: int) -> Iterator[int]:
    """Yield what is asked for one after the other, as numbers of its kind.

    First every pod of the trace once in an order of chance, then any of them, until they have asked for
    130 % of the capacity.
    """
    chance = Random(seed)
    takes = [request.takes for request in asked()]
    pods = [kind for kind, times in enumerate(asked().values()) for _ in range(times)]
    first = chance.sample(pods, len(pods))
    came = 0
    while came < ARRIVED * capacity:
        kind = first.pop() if first else chance.choice(pods)
        came += takes[kind]
        yield kind


def capacity_of(nodes: list[Room]) -> int:
    return WHOLE * sum(len(node.left) for node in nodes)


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (HERE / name).open() as file:
        yield from csv.DictReader(file)
