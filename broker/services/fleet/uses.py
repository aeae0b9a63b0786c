"""What every unit of a card is used for now, for operators."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from broker.domain.geometry import CardState
from broker.domain.packing import Wares
from broker.domain.repartition import Step
from broker.domain.states import LeaseState, PriceClass
from broker.models import Health, NodeState


class Use(StrEnum):
    SOLD = "sold"
    SPOT = "spot"
    RESERVED = "reserved"  # held for a lease that is not charged: on its way in or out
    FREE = "free"
    FRAGMENTED = "fragmented"  # free, but nothing that is sold fits beside what is there
    UNHEALTHY = "unhealthy"
    MAINTENANCE = "maintenance"  # free on a node that takes nothing new


CHARGED = (Use.SOLD, Use.SPOT)


class Slice(NamedTuple):
    """One place on a card and the lease that holds it.

    Its moments are seconds since the epoch: a map has thousands and shows few, and a datetime costs more than its row.
    """

    start: int
    size: int
    profile: str
    since_s: float  # when it became what it is now
    lease: str
    lease_name: str
    state: LeaseState
    ends_s: float | None
    offering: str
    price_class: PriceClass
    held_s: float  # when the place was taken
    sold_s: int | None  # since when it is charged without a break; None when it is not now
    tenant: str
    tenant_name: str

    @property
    def use(self) -> Use:
        if self.state is not LeaseState.ACTIVE:
            return Use.RESERVED
        return Use.SPOT if self.price_class is PriceClass.SPOT else Use.SOLD

    @property
    def since(self) -> datetime:
        return datetime.fromtimestamp(self.since_s, UTC)

    @property
    def ends_at(self) -> datetime | None:
        return None if self.ends_s is None else datetime.fromtimestamp(self.ends_s, UTC)


class Run(NamedTuple):
    """Neighbouring units of one use; `held` names the lease where there is one."""

    start: int
    size: int
    use: Use
    held: Slice | None = None


class Look(NamedTuple):
    """What all cards show on which slices of these uses lie like this."""

    runs: tuple[tuple[int, int, Use, int | None], ...]  # start, size, use, and which of the slices it is
    units: Mapping[Use, int]


@dataclass
class Card:
    """One card, its place in the fleet, and all that lies on it; its moments are as those of slices."""

    id: str
    index: int
    model: str
    grid: int
    health: Health
    health_reason: str
    health_since_s: float
    node: str
    node_name: str
    node_state: NodeState
    node_since_s: float
    cluster: str
    cluster_name: str
    region: str
    since_s: int  # when its cluster was added
    shares: bool  # its cluster's owner lets two tenants lie on one card of class soft or none
    wares: Wares
    cutting: str = ""  # while its node is closed to be cut anew: the step that change is in
    unreadable: str = ""  # why its books cannot be as they say; nothing new is placed on it then
    state: CardState = field(default_factory=CardState)
    slices: list[Slice] = field(default_factory=list)

    @property
    def health_since(self) -> datetime:
        return datetime.fromtimestamp(self.health_since_s, UTC)

    @property
    def node_since(self) -> datetime:
        return datetime.fromtimestamp(self.node_since_s, UTC)

    @property
    def where(self) -> str:
        return f"{self.cluster_name} / {self.node_name} / card {self.index}"

    @property
    def idle_use(self) -> Use | None:
        """What free units are when something is wrong with the card; None when they can be sold."""
        if self.unreadable or self.cutting == Step.QUARANTINED:
            return Use.UNHEALTHY
        return use_when_free(self.health, self.node_state) or (Use.MAINTENANCE if self.cutting else None)

    @cached_property
    def look(self) -> Look:
        """Where which use is; many cards share one."""
        return look_of(
            self.wares, self.state, self.idle_use, tuple((s.start, s.size, s.use) for s in self.slices)
        )

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The whole card from its first unit to its last."""
        return tuple(
            Run(start, size, use, None if which is None else self.slices[which])
            for start, size, use, which in self.look.runs
        )

    def units(self, *uses: Use) -> int:
        return sum(self.look.units.get(use, 0) for use in uses)


# A thousand cards have few looks, and a page that shows them all works each out once for all of them.
@lru_cache(maxsize=16384)
def look_of(wares: Wares, state: CardState, idle: Use | None, held: tuple[tuple[int, int, Use], ...]) -> Look:
    """Lay out a card from its first unit to its last; free neighbours of one use are one run."""
    runs: list[tuple[int, int, Use, int | None]] = [(*each, which) for which, each in enumerate(held)]
    lost = wares.lost(state)
    for unit in range(wares.grid):
        if state.mask >> unit & 1:
            continue
        use = idle or (Use.FRAGMENTED if lost >> unit & 1 else Use.FREE)
        start, size, before, which = runs[-1] if runs else (0, 0, None, None)
        if which is None and (start + size, before) == (unit, use):
            runs[-1] = (start, size + 1, use, None)
        else:
            runs.append((unit, 1, use, None))
    units: Counter[Use] = Counter()
    for _, size, use, _ in runs:
        units[use] += size
    return Look(tuple(sorted(runs, key=lambda run: run[0])), MappingProxyType(units))


def use_when_free(health: Health, node: NodeState) -> Use | None:
    if health is Health.UNHEALTHY or node is NodeState.LOST:
        return Use.UNHEALTHY
    return None if node is NodeState.READY else Use.MAINTENANCE


# What one may ask to see of a fleet.
CHOICES: dict[str, Callable[[Card], bool]] = {
    "sold": lambda card: card.units(*CHARGED) > 0,
    "free": lambda card: card.units(Use.FREE) > 0,
    "fragmented": lambda card: card.units(Use.FRAGMENTED) > 0,
    "out": lambda card: card.idle_use is not None,
}
SCALE = 168_000  # thousandths of a card, for every grid there is (4, 7, 8 and 12 divide 168)


def scaled(units: int, grid: int) -> int:
    """Return units of a card in parts of SCALE, rounded down where a grid does not divide it."""
    return units * SCALE // grid


def cards_by_use(cards: Iterable[Card]) -> dict[Use, int]:
    """Add up what the fleet is used for, in parts of SCALE of a card."""
    units: Counter[tuple[Use, int]] = Counter()
    for card in cards:
        for use, count in card.look.units.items():
            units[use, card.grid] += count
    total = dict.fromkeys(Use, 0)
    for (use, grid), count in units.items():
        total[use] += scaled(count, grid)
    return total
