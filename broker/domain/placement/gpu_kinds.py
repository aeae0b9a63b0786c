"""Kinds of GPUs: what they can be sold as, with shared tables and ranks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import Geometry, GpuState
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.geometry.published_profiles import Partitioning, PublishedProfiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.buckets.warm_slots import WarmSlots
from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.bid_price_rule import PlacementCost
from broker.domain.placement.costs.engines import PlacementEngine, ranks_for_engine
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import EMPTY, NO_STATE, PlacementOption, StateTable

ProfileKey = tuple[str, Isolation]  # what distinguishes the profiles of a model
PriceList = tuple[tuple[ProfileKey, float], ...]  # prices that replace the default ones


@dataclass(frozen=True, eq=False)
class GpuKind:
    """GPUs of a model with one partitioning, or not partitioned yet."""

    ranks: StateRanks
    has_fixed_layout: bool = False  # partitioned already

    @property
    def table(self) -> StateTable:
        return self.ranks.table

    @cached_property
    def profile_numbers(self) -> dict[ProfileKey, int]:
        return {(profile.name, profile.isolation): n for n, profile in enumerate(self.table.profiles)}

    @cached_property
    def lowest_cost(self) -> tuple[dict[int, PlacementCost], ...]:
        """By profile, the cost of the best slot in each state where it fits."""
        return tuple(
            {state: PlacementCost(*cost) for state, cost in zip(states, costs, strict=True)}
            for states, costs in zip(self.ranks.states_by_rank, self.ranks.cost, strict=True)
        )

    @cached_property
    def placements(self) -> tuple[dict[int, Placement], ...]:
        """By profile, its possible placements by first unit."""
        return tuple({place.start: place for place in its.placements} for its in self.table.profiles)

    @cached_property
    def max_instances(self) -> tuple[tuple[int, ...], ...]:
        """By profile and state, how many more fit exactly; none for NO_STATE."""
        return tuple(_max_by_state(its) for its in self.table.options)

    @cached_property
    def warm_slots(self) -> WarmSlots:
        """The slices that may be left over on a GPU."""
        return WarmSlots(self.ranks)

    def state_of(self, gpu: GpuState) -> int:
        """Return the number of a GPU's state.

        It is NO_STATE where its slices contradict its partitioning. A GPU of fixed layout may hold
        slices of an earlier one: the slots that they overlap are taken.
        """
        if not gpu.mask:
            return EMPTY
        key = (gpu.mask, gpu.media, gpu.isolation, gpu.count)
        known = self._states.get(key)
        if known is None:
            known = self._states[key] = self._state(*key)
        return known

    def _state(self, mask: int, media: bool, isolation: Isolation | None, count: int) -> int:
        part = self._isolation_bits.get(isolation)
        if part is None:
            return NO_STATE
        engines = self.table.media_bit if media and self._sells_media else 0
        if exact := self._by_bits.get(mask | engines | part):
            return exact.get(count, min(exact.values()))
        units, taken = self.table.media_bit - 1, engines
        for slot in self._slots:
            if slot & mask & units:
                taken |= slot & units
        touched = self._by_bits.get(taken | part if taken else EMPTY)
        return min(touched.values()) if touched else NO_STATE

    @cached_property
    def _states(self) -> dict[tuple[int, bool, Isolation | None, int], int]:
        return {}

    @cached_property
    def _by_bits(self) -> dict[int, dict[int, int]]:
        """The states by what is taken, and among equals by number of slices."""
        found: dict[int, dict[int, int]] = {}
        for state in range(len(self.table.states)):
            found.setdefault(self.table.bits_without_count(state), {})[self.table.slice_count(state)] = state
        return found

    @cached_property
    def _isolation_bits(self) -> dict[Isolation | None, int]:
        """By isolation, the bits of a state beside units and media engines."""
        above = ~(2 * self.table.media_bit - 1)
        return {
            profile.isolation: self.table.slice_bits(n, place.start) & above
            for n, profile in enumerate(self.table.profiles)
            for place in profile.placements[:1]
        }

    @cached_property
    def _slots(self) -> tuple[int, ...]:
        return tuple(self.table.slice_bits(n, start) for n, its in enumerate(self.table.state_with) for start in its)

    @cached_property
    def _sells_media(self) -> bool:
        return any(profile.media for profile in self.table.profiles)


def _max_by_state(moves: tuple[tuple[PlacementOption, ...], ...]) -> tuple[int, ...]:
    """Return, by state, the longest sequence of one profile that fits."""
    most = [0] * (len(moves) + 1)
    for state in reversed(range(len(moves))):
        most[state] = max((1 + most[move.next_state] for move in moves[state]), default=0)
    return tuple(most)


@lru_cache(maxsize=1024)
def gpu_kind_of(
    model: GpuModelSpec,
    layout: Partitioning,
    price_list: PriceList = (),
    engine: PlacementEngine = PlacementEngine.BID_PRICE,
) -> GpuKind:
    """Return the shared kind of a model's GPUs with this partitioning."""
    fixed = isinstance(layout, Geometry)
    sold = _sold_profiles(model, layout)
    given: Mapping[ProfileKey, float] = dict(price_list)
    usual = slice_prices.default_prices(sold, model.grid, model.compute)
    prices = tuple(given.get((p.name, p.isolation), price) for p, price in zip(sold, usual, strict=True))
    # Slices of profiles that are no longer published may still exist.
    existing = all_profiles(model) if isinstance(layout, PublishedProfiles) else ()
    # A fixed layout implies the number of slices, so it is not counted.
    return GpuKind(ranks_for_engine(engine, sold, model.grid, prices, counted=not fixed, existing=existing), fixed)


def _sold_profiles(model: GpuModelSpec, layout: Partitioning) -> tuple[Profile, ...]:
    if isinstance(layout, PublishedProfiles):
        return layout.only(all_profiles(model))
    return all_profiles(model) if layout is None else _layout_profiles(layout)


def all_profiles(model: GpuModelSpec) -> tuple[Profile, ...]:
    """Return all profiles a GPU of a model can have: slices, whole, shares."""
    kinds = (Isolation.HARDWARE, Isolation.DEVICE, Isolation.SOFT, Isolation.NONE)
    return tuple(profile for isolation in kinds for profile in model.profiles_with(isolation))


def check_profile_of_model(model: GpuModelSpec, profile: Profile) -> None:
    """Raise ValueError for a profile that no GPU of the model can have."""
    if profile not in (*model.profiles, *all_profiles(model)):
        raise ValueError(f"{model.name} has no {profile.isolation} profile {profile.name!r}")


def _layout_profiles(layout: Geometry) -> tuple[Profile, ...]:
    """Return the profiles of a layout, each with its placements in it only."""
    held = sorted(layout.held, key=lambda each: (each.profile.name, each.placement))
    profiles = dict.fromkeys(each.profile for each in held)
    return tuple(
        replace(profile, placements=tuple(each.placement for each in held if each.profile == profile))
        for profile in profiles
    )
