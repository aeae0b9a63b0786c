"""Links between the GPUs of a node, and which free GPUs fit together best."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple


class GpuLink(IntEnum):
    """The connection between two GPUs, nearest first."""

    SWITCH = 0  # NVSwitch: all GPUs are linked equally
    BRIDGE = 1  # an NVLink bridge of two
    NUMA = 2  # PCIe of one processor
    SYSTEM = 3  # across processors


LinkMatrix = tuple[tuple[GpuLink, ...], ...]
# Link requirements by name, with the longest link each allows between two GPUs.
LINK_LIMITS = {"nvlink": GpuLink.BRIDGE, "numa": GpuLink.NUMA}


class GpuLinks(NamedTuple):
    """A GPU's links as its node reports them; empty: not reported."""

    gpu: str
    fabric: str  # GPUs with the same value are linked by NVLink
    numa: str  # GPUs with the same value share a processor


@dataclass(frozen=True)
class Topology:
    """The GPUs of one node with their links; ValueError for an invalid matrix."""

    gpus: tuple[str, ...]
    links: LinkMatrix

    def __post_init__(self) -> None:
        size = len(self.gpus)
        if len(self.links) != size or any(len(row) != size for row in self.links):
            raise ValueError(f"the links of {size} GPUs are {size} rows of {size}")
        if any(self.links[a][b] != self.links[b][a] for a, b in combinations(range(size), 2)):
            raise ValueError("links must be symmetric")

    def closest_free_gpus(self, free: Iterable[str], count: int) -> tuple[GpuLink, tuple[str, ...]] | None:
        """Return the nearest free GPUs and their longest link; None: too few.

        Among equals those are taken that leave the others nearest to each other: no bridge is split for
        a gang that does not need it.
        """
        mask = sum(1 << self.gpus.index(gpu) for gpu in free)
        if mask.bit_count() < count:
            return None
        link, chosen = _nearest_group(self.links, mask, count)
        return link, tuple(gpu for n, gpu in enumerate(self.gpus) if chosen >> n & 1)

    def largest_linked_count(self, gpus: Iterable[str], max_link: GpuLink) -> int:
        """Return the largest number of these GPUs linked within a limit.

        All of them are taken to be free.
        """
        return _largest_linked_group(self.links, sum(1 << self.gpus.index(gpu) for gpu in gpus), max_link)


def topology_of(gpus: Sequence[GpuLinks]) -> Topology | None:
    """Return a node's topology from its GPUs' reports; None without reports."""
    if not any(gpu.fabric or gpu.numa for gpu in gpus):
        return None
    fabrics, numas = (_first_index([gpu.fabric for gpu in gpus]), _first_index([gpu.numa for gpu in gpus]))
    return Topology(tuple(gpu.gpu for gpu in gpus), _links(fabrics, numas))


def _first_index(names: Sequence[str]) -> tuple[int, ...]:
    """Return each name's first index, -1 for none, so that equal nodes compare equal."""
    return tuple(names.index(name) if name else -1 for name in names)


@lru_cache(maxsize=4096)
def _links(fabrics: tuple[int, ...], numas: tuple[int, ...]) -> LinkMatrix:
    def link(a: int, b: int) -> GpuLink:
        if fabrics[a] == fabrics[b] != -1:
            return GpuLink.BRIDGE if fabrics.count(fabrics[a]) == 2 else GpuLink.SWITCH
        return GpuLink.NUMA if numas[a] == numas[b] != -1 else GpuLink.SYSTEM

    every = range(len(fabrics))
    return tuple(tuple(link(a, b) for b in every) for a in every)


@lru_cache(maxsize=4096)
def _largest_linked_group(links: LinkMatrix, free: int, max_link: GpuLink) -> int:
    counts = range(free.bit_count(), 0, -1)
    return next((count for count in counts if _nearest_group(links, free, count)[0] <= max_link), 0)


# Equal node models have equal links, so a fleet needs few rows of 256 masks.
@lru_cache(maxsize=65_536)
def _nearest_group(links: LinkMatrix, free: int, count: int) -> tuple[GpuLink, int]:
    gpus = [n for n in range(len(links)) if free >> n & 1]
    ranked = []
    for chosen in combinations(gpus, count):
        within = [links[a][b] for a, b in combinations(chosen, 2)]
        left = [links[a][b] for a, b in combinations([n for n in gpus if n not in chosen], 2)]
        worst = max(within, default=GpuLink.SWITCH)
        remaining = tuple(-left.count(link) for link in GpuLink)  # the more near links are left, the better
        ranked.append((worst, sum(within), remaining, sum(1 << n for n in chosen)))
    worst, _, _, mask = min(ranked)
    return worst, mask
