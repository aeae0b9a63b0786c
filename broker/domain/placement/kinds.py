"""Cards of one kind: what they can be sold as, with the tables and ranks that all of them share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from broker.domain.geometry import CardState, Geometry
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.placement import prices
from broker.domain.placement.engines import Engine, ranks_of
from broker.domain.placement.ranks import Ranks
from broker.domain.placement.rules import Cost
from broker.domain.placement.tables import EMPTY, NOWHERE, Move, Table
from broker.domain.placement.warm_seats import Seats
from broker.domain.profiles import Placement, Profile
from broker.domain.published import Cut, Published
from broker.domain.states import Isolation

Name = tuple[str, Isolation]  # what tells the profiles of a model apart
PriceList = tuple[tuple[Name, float], ...]  # prices that replace the default ones


@dataclass(frozen=True, eq=False)
class Kind:
    """The cards of a model that are cut in one way, or that are not cut yet and may become whatever they can."""

    ranks: Ranks
    fixed: bool = False  # cut already

    @property
    def table(self) -> Table:
        return self.ranks.table

    @cached_property
    def number(self) -> dict[Name, int]:
        return {(profile.name, profile.isolation): n for n, profile in enumerate(self.table.profiles)}

    @cached_property
    def cost(self) -> tuple[dict[int, Cost], ...]:
        """By profile what the best seat costs on a card in each state in which it fits."""
        return tuple(
            {state: Cost(*cost) for state, cost in zip(states, costs, strict=True)}
            for states, costs in zip(self.ranks.order, self.ranks.cost, strict=True)
        )

    @cached_property
    def placement(self) -> tuple[dict[int, Placement], ...]:
        """By profile the places that it can have, by their first unit."""
        return tuple({place.start: place for place in its.placements} for its in self.table.profiles)

    @cached_property
    def most(self) -> tuple[tuple[int, ...], ...]:
        """By profile and state exactly how many of it a card could still take, and none for NOWHERE."""
        return tuple(_most(its) for its in self.table.moves)

    @cached_property
    def seats(self) -> Seats:
        """What may be left cut on a card."""
        return Seats(self.ranks)

    def state(self, card: CardState) -> int:
        """Return the number of a card's state, NOWHERE where what it holds contradicts what it can be cut into.

        A card of fixed layout may hold slices of an earlier one: the seats that they touch are taken.
        """
        if not card.mask:
            return EMPTY
        key = (card.mask, card.media, card.isolation, card.count)
        known = self._states.get(key)
        if known is None:
            known = self._states[key] = self._state(*key)
        return known

    def _state(self, mask: int, media: bool, isolation: Isolation | None, count: int) -> int:
        part = self._part.get(isolation)
        if part is None:
            return NOWHERE
        engines = self.table.media if media and self._sells_media else 0
        if exact := self._by_bits.get(mask | engines | part):
            return exact.get(count, min(exact.values()))
        units, taken = self.table.media - 1, engines
        for seat in self._seats:
            if seat & mask & units:
                taken |= seat & units
        touched = self._by_bits.get(taken | part if taken else EMPTY)
        return min(touched.values()) if touched else NOWHERE

    @cached_property
    def _states(self) -> dict[tuple[int, bool, Isolation | None, int], int]:
        return {}

    @cached_property
    def _by_bits(self) -> dict[int, dict[int, int]]:
        """The states by what is taken and, among equals, by how many slices take it."""
        found: dict[int, dict[int, int]] = {}
        for state in range(len(self.table.states)):
            found.setdefault(self.table.without_count(state), {})[self.table.count(state)] = state
        return found

    @cached_property
    def _part(self) -> dict[Isolation | None, int]:
        """What the state of a card holds beside units and media engines while it serves an isolation."""
        above = ~(2 * self.table.media - 1)
        return {
            profile.isolation: self.table.bits(n, place.start) & above
            for n, profile in enumerate(self.table.profiles)
            for place in profile.placements[:1]
        }

    @cached_property
    def _seats(self) -> tuple[int, ...]:
        return tuple(self.table.bits(n, start) for n, its in enumerate(self.table.put) for start in its)

    @cached_property
    def _sells_media(self) -> bool:
        return any(profile.media for profile in self.table.profiles)


def _most(moves: tuple[tuple[Move, ...], ...]) -> tuple[int, ...]:
    """Return by state the longest way to go on with one profile alone, and none for NOWHERE."""
    most = [0] * (len(moves) + 1)
    for state in reversed(range(len(moves))):
        most[state] = max((1 + most[move.after] for move in moves[state]), default=0)
    return tuple(most)


@lru_cache(maxsize=1024)
def kind_of(
    model: GpuModelSpec,
    cut: Cut,
    price_list: PriceList = (),
    engine: Engine = Engine.BID_PRICE,
) -> Kind:
    """Return the one kind of a model's cards that are cut so, or that can be cut so."""
    fixed = isinstance(cut, Geometry)
    sold = _sold(model, cut)
    given: Mapping[Name, float] = dict(price_list)
    usual = prices.default(sold, model.grid, model.compute)
    worth = tuple(given.get((p.name, p.isolation), price) for p, price in zip(sold, usual, strict=True))
    # What a card publishes no longer may still lie on it.
    besides = everything(model) if isinstance(cut, Published) else ()
    # A layout says by itself how many slices there are.
    return Kind(ranks_of(engine, sold, model.grid, worth, counted=not fixed, besides=besides), fixed)


def _sold(model: GpuModelSpec, cut: Cut) -> tuple[Profile, ...]:
    if isinstance(cut, Published):
        return cut.only(everything(model))
    return everything(model) if cut is None else _cut(cut)


def everything(model: GpuModelSpec) -> tuple[Profile, ...]:
    """Return all that a card of a model can be sold as: slices, the card as a whole, shares."""
    kinds = (Isolation.HARDWARE, Isolation.DEVICE, Isolation.SOFT, Isolation.NONE)
    return tuple(profile for isolation in kinds for profile in model.sold_as(isolation))


def must_be_of(model: GpuModelSpec, profile: Profile) -> None:
    """Raise ValueError for a profile that no card of the model can ever have."""
    if profile not in (*model.profiles, *everything(model)):
        raise ValueError(f"{model.name} has no {profile.isolation} profile {profile.name!r}")


def _cut(layout: Geometry) -> tuple[Profile, ...]:
    """Return the profiles of a layout, each at the places that it has there and nowhere else."""
    held = sorted(layout.held, key=lambda each: (each.profile.name, each.placement))
    profiles = dict.fromkeys(each.profile for each in held)
    return tuple(
        replace(profile, placements=tuple(each.placement for each in held if each.profile == profile))
        for profile in profiles
    )
