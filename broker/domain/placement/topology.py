"""How the cards of a node reach each other, and which of the free ones belong together best."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple


class Link(IntEnum):
    """The way between two cards, the nearest first."""

    SWITCH = 0  # NVSwitch: every card reaches every other alike
    BRIDGE = 1  # an NVLink bridge of two
    NUMA = 2  # PCIe below one processor
    SYSTEM = 3  # across processors


Links = tuple[tuple[Link, ...], ...]
# What may be asked for, by name, and the longest link that may lie between two cards then.
ASKED = {"nvlink": Link.BRIDGE, "numa": Link.NUMA}


class Wired(NamedTuple):
    """A card as its node reports it; empty: it says nothing of that."""

    gpu: str
    fabric: str  # cards that have the same reach each other by NVLink
    numa: str  # cards that have the same lie below one processor


@dataclass(frozen=True)
class Topology:
    """The cards of one node in the order of their links; raises ValueError for links that are no matrix."""

    cards: tuple[str, ...]
    links: Links

    def __post_init__(self) -> None:
        size = len(self.cards)
        if len(self.links) != size or any(len(row) != size for row in self.links):
            raise ValueError(f"the links of {size} cards are {size} rows of {size}")
        if any(self.links[a][b] != self.links[b][a] for a, b in combinations(range(size), 2)):
            raise ValueError("a link is the same from both of its ends")

    def together(self, free: Iterable[str], count: int) -> tuple[Link, tuple[str, ...]] | None:
        """Return so many of the free cards that are nearest to each other, and their longest link; None: too few.

        Of equal ones those are taken whose loss leaves the others nearest to each other: no bridge is torn apart
        for a gang that does not need it.
        """
        mask = sum(1 << self.cards.index(gpu) for gpu in free)
        if mask.bit_count() < count:
            return None
        link, chosen = _nearest(self.links, mask, count)
        return link, tuple(gpu for n, gpu in enumerate(self.cards) if chosen >> n & 1)

    def most(self, gpus: Iterable[str], within: Link) -> int:
        """Return how many of some cards, were all of them free, reach each other by links no longer than this."""
        return _most(self.links, sum(1 << self.cards.index(gpu) for gpu in gpus), within)


def wired(cards: Sequence[Wired]) -> Topology | None:
    """Return the links of a node by what its cards say of themselves, or None where they say nothing."""
    if not any(card.fabric or card.numa for card in cards):
        return None
    fabrics, numas = _alike([card.fabric for card in cards]), _alike([card.numa for card in cards])
    return Topology(tuple(card.gpu for card in cards), _links(fabrics, numas))


def _alike(names: Sequence[str]) -> tuple[int, ...]:
    """Return for each name where it stands first, -1 for none: nodes of one make are equal then."""
    return tuple(names.index(name) if name else -1 for name in names)


@lru_cache(maxsize=4096)
def _links(fabrics: tuple[int, ...], numas: tuple[int, ...]) -> Links:
    def link(a: int, b: int) -> Link:
        if fabrics[a] == fabrics[b] != -1:
            return Link.BRIDGE if fabrics.count(fabrics[a]) == 2 else Link.SWITCH
        return Link.NUMA if numas[a] == numas[b] != -1 else Link.SYSTEM

    every = range(len(fabrics))
    return tuple(tuple(link(a, b) for b in every) for a in every)


@lru_cache(maxsize=4096)
def _most(links: Links, free: int, within: Link) -> int:
    counts = range(free.bit_count(), 0, -1)
    return next((count for count in counts if _nearest(links, free, count)[0] <= within), 0)


# Nodes of one make have equal links, so a fleet fills few rows of 256 masks.
@lru_cache(maxsize=65_536)
def _nearest(links: Links, free: int, count: int) -> tuple[Link, int]:
    cards = [n for n in range(len(links)) if free >> n & 1]
    ranked = []
    for chosen in combinations(cards, count):
        within = [links[a][b] for a, b in combinations(chosen, 2)]
        left = [links[a][b] for a, b in combinations([n for n in cards if n not in chosen], 2)]
        worst = max(within, default=Link.SWITCH)
        kept = tuple(-left.count(link) for link in Link)  # the more near ones are left, the better
        ranked.append((worst, sum(within), kept, sum(1 << n for n in chosen)))
    worst, _, _, mask = min(ranked)
    return worst, mask
