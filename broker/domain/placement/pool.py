"""The GPUs of one pool by id: slot search, held slots, and remaining capacity."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import EMPTY_GPU, GpuState
from broker.domain.geometry.profiles import Profile
from broker.domain.geometry.published_profiles import Partitioning
from broker.domain.placement.buckets.bucket_groups import BucketGroup, NodeNumbers
from broker.domain.placement.costs.bid_price_rule import PlacementCost
from broker.domain.placement.costs.engines import PlacementEngine
from broker.domain.placement.costs.state_tables import EMPTY
from broker.domain.placement.gangs.node_classes import GangCandidate, NodeClasses, NodeIndex
from broker.domain.placement.gpu_kinds import GpuKind, ProfileKey, check_profile_of_model, gpu_kind_of
from broker.domain.placement.slots import Slot
from broker.domain.placement.warm_slices import WarmSlices, after_placing, after_release


@dataclass(frozen=True, slots=True)
class GpuView:
    """One GPU as placement sees it.

    A Geometry fixes its partitioning in advance, anything else leaves it to us. `warm` are leftover
    slices of ended leases; None: there never are any.
    """

    gpu: str
    node: str
    state: GpuState = EMPTY_GPU
    layout: Partitioning = None
    warm: WarmSlices | None = None


GroupOffer = tuple[BucketGroup, int]  # a bucket group that offers a profile, and the profile's number there


class PoolIndex:
    """The GPUs of one GpuModel that may serve the same requests.

    Its choice depends on the GPUs alone, never on their order or history. Among equal GPUs it takes one
    where the slice exists already, then one where no leftover slice must be destroyed, then the one
    with the lowest id; among equal nodes the one with the lowest.
    """

    def __init__(
        self,
        model: GpuModelSpec,
        gpus: Iterable[GpuView] = (),
        *,
        price_list: Mapping[ProfileKey, float] | None = None,
        engine: PlacementEngine = PlacementEngine.BID_PRICE,
    ) -> None:
        self.model, self.engine = model, engine
        self._prices = tuple(sorted((price_list or {}).items()))
        self._gpus: dict[str, GpuView] = {}
        self._nodes = NodeNumbers()
        self._groups: dict[Partitioning, BucketGroup] = {}
        self._groups_by_profile: dict[ProfileKey, list[GroupOffer]] = {}  # cache, cleared when a bucket group is added
        self._node_index: NodeIndex | None = None  # created when a gang first requests one node
        for layout, together in self._by_layout(gpus).items():
            self._add_group(layout, together)

    def add(self, gpu: GpuView) -> None:
        """Add a GPU; raise ValueError when it is in the pool already."""
        if gpu.gpu in self._gpus:
            raise _duplicate_error(gpu)
        self._gpus[gpu.gpu] = gpu
        group = self._groups.get(gpu.layout) or self._add_group(gpu.layout, ())
        group.add(
            gpu.gpu,
            self._nodes.number_of(gpu.node),
            group.kind.state_of(gpu.state),
            self._leftover_bits(group.kind, gpu),
        )
        if self._node_index:
            self._node_index.add_gpu(gpu.gpu, gpu.node)

    def remove(self, gpu_id: str) -> GpuView:
        """Remove a GPU and return its present view."""
        gpu = self._gpus.pop(gpu_id)
        self._groups[gpu.layout].remove(gpu_id)
        if self._node_index:
            self._node_index.remove_gpu(gpu_id, gpu.node)
        return gpu

    def gpu_view(self, gpu: str) -> GpuView:
        return self._gpus[gpu]

    def find_cheapest_slot(self, profile: Profile) -> Slot | None:
        """Return the free slot that costs least, or None when there is none."""
        found = self._cheapest(profile)
        return found[2] if found else None

    def _cheapest(self, profile: Profile) -> tuple[GroupOffer, int, Slot] | None:
        """Return the cheapest slot with its bucket group, profile number and rank."""
        offers = self.groups_offering(profile)
        if len(offers) == 1:  # the case in most pools
            rank = _lowest_rank(offers[0])
            return None if rank is None else (offers[0], rank, self._first_slot(offers[0], rank))
        ranks = [(offer, rank) for offer in offers if (rank := _lowest_rank(offer)) is not None]
        if not ranks:
            return None
        # Among equals prefer a partitioned GPU: requests for another layout lose nothing.
        keys = [
            (_offer_cost(offer, rank).comparable_across_layouts, self.is_unpartitioned(offer[0]))
            for offer, rank in ranks
        ]
        least = min(keys)
        equal = [
            (offer, rank, self._first_slot(offer, rank))
            for (offer, rank), key in zip(ranks, keys, strict=True)
            if key == least
        ]
        return min(equal, key=lambda found: (found[2].gpu, found[2].placement.start))

    def _first_slot(self, offer: GroupOffer, rank: int) -> Slot:
        group, number = offer
        gpu, start = self._first_of_cheapest(group, number, rank)
        return Slot(gpu, group.kind.placements[number][start])

    def hold(self, slot: Slot, profile: Profile) -> None:
        """Take a slot; raise ValueError when it is not free."""
        gpu = self._gpus[slot.gpu]
        warm = gpu.warm and after_placing(gpu.warm, profile, slot.placement)
        self._update(replace(gpu, state=gpu.state.with_held(profile, slot.placement), warm=warm))

    def release(self, slot: Slot, profile: Profile) -> None:
        """Free a slot; raise ValueError when it was not held.

        Its slice may be left over on the GPU.
        """
        gpu = self._gpus[slot.gpu]
        warm = None if gpu.warm is None else after_release(gpu.warm, profile, slot.placement)
        self._update(replace(gpu, state=gpu.state.without(profile, slot.placement), warm=warm))

    @contextmanager
    def hold_temporarily(self) -> Iterator[Callable[[Slot, Profile], None]]:
        """Hold slots within a block; afterwards every GPU is restored.

        Leftover slices are restored, too.
        """
        before: list[GpuView] = []

        def hold(slot: Slot, profile: Profile) -> None:
            gpu = self._gpus[slot.gpu]
            self.hold(slot, profile)
            before.append(gpu)

        try:
            yield hold
        finally:
            for gpu in reversed(before):
                self._update(gpu)

    def how_many_fit(self, profile: Profile) -> int:
        """Return exactly how many of a profile could be placed now, in sequence."""
        return sum(
            group.buckets.gpu_count(state) * most
            for group, number in self.groups_offering(profile)
            for state, most in enumerate(group.kind.max_instances[number])
            if most
        )

    def _by_layout(self, gpus: Iterable[GpuView]) -> dict[Partitioning, list[GpuView]]:
        together: defaultdict[int, list[GpuView]] = defaultdict(list)
        for gpu in gpus:
            if gpu.gpu in self._gpus:
                raise _duplicate_error(gpu)
            self._gpus[gpu.gpu] = gpu
            # Group by identity first: a fleet has few layouts, so each is hashed only once.
            together[id(gpu.layout)].append(gpu)
        found: dict[Partitioning, list[GpuView]] = {}
        for its in together.values():
            found.setdefault(its[0].layout, []).extend(its)
        return found

    def _add_group(self, layout: Partitioning, gpus: Sequence[GpuView]) -> BucketGroup:
        kind = gpu_kind_of(self.model, layout, self._prices, self.engine)
        states = [kind.state_of(gpu.state) for gpu in gpus]
        on = [self._nodes.number_of(gpu.node) for gpu in gpus]
        left = [self._leftover_bits(kind, gpu) for gpu in gpus]
        group = BucketGroup(kind, [gpu.gpu for gpu in gpus], on, states, left, self._nodes)
        self._groups[layout] = group
        self._groups_by_profile.clear()
        return group

    def node_classes(self, profile: Profile) -> NodeClasses:
        """Return the node classes of a profile; ValueError if of another model."""
        self.groups_offering(profile)
        if self._node_index is None:
            together = ((gpu.gpu, gpu.node) for gpu in self._gpus.values())
            self._node_index = NodeIndex(
                together, find_fitting=self._find_fitting, find_on_all_nodes=self._find_on_all_nodes
            )
        return self._node_index.classes_for(profile, whole_gpu=profile.memory == self.model.grid)

    def mark_links_changed(self, node: str) -> None:
        """Record that the links between a node's GPUs changed."""
        if self._node_index:
            self._node_index.mark_changed(node)

    def _find_on_all_nodes(self, profile: Profile) -> dict[str, list[GangCandidate]]:
        found: defaultdict[str, list[GangCandidate]] = defaultdict(list)
        for group, number in self.groups_offering(profile):
            kind, unpartitioned = group.kind, self.is_unpartitioned(group)
            for state in kind.ranks.states_by_rank[number]:
                for gpu, node in group.gpus_in(state):
                    found[node].append(GangCandidate(gpu, kind, number, state, unpartitioned))
        return found

    def _find_fitting(self, gpus: Iterable[str], profile: Profile) -> list[GangCandidate]:
        found, name = [], (profile.name, profile.isolation)
        for gpu in gpus:
            group = self._groups[self._gpus[gpu].layout]
            number, state = group.kind.profile_numbers.get(name), group.state_of(gpu)
            if number is not None and state in group.kind.lowest_cost[number]:
                found.append(GangCandidate(gpu, group.kind, number, state, self.is_unpartitioned(group)))
        return found

    def is_unpartitioned(self, group: BucketGroup) -> bool:
        """Tell whether the GPUs of a bucket group are not partitioned yet."""
        return not group.kind.has_fixed_layout

    def groups_offering(self, profile: Profile) -> list[GroupOffer]:
        """Return the bucket groups that offer a profile, with its number in each."""
        name = (profile.name, profile.isolation)
        if (found := self._groups_by_profile.get(name)) is None:
            found = [(s, s.kind.profile_numbers[name]) for s in self._groups.values() if name in s.kind.profile_numbers]
            if not found:
                check_profile_of_model(self.model, profile)
            self._groups_by_profile[name] = found
        return found

    def _first_of_cheapest(self, group: BucketGroup, number: int, rank: int) -> tuple[str, int]:
        """Return the first of the cheapest GPUs, with the first unit there."""
        ranks = group.kind.ranks
        order, cost = ranks.states_by_rank[number], ranks.cost[number]
        if self.engine.picks_lowest_gpu_id:
            alike = takewhile(lambda other: cost[other] == cost[rank], range(rank, len(order)))
            live = group.buckets.occupied_ranks[number]
            gpu = min(group.lowest_gpu_in(order[other]) for other in alike if live >> other & 1)
            return gpu, ranks.best_option[number][group.state_of(gpu)].start
        # Take an empty GPU of the node with fewest: whole nodes stay whole for gangs.
        is_empty = order[rank] == EMPTY and self.is_unpartitioned(group)
        return group.find_quickest_empty_slot(number) if is_empty else group.find_quickest_slot(number, rank)

    def _update(self, gpu: GpuView) -> None:
        """Update a GPU of the pool to its present view."""
        self._gpus[gpu.gpu] = gpu
        group = self._groups[gpu.layout]
        group.set_state(gpu.gpu, group.kind.state_of(gpu.state), self._leftover_bits(group.kind, gpu))
        if self._node_index:
            self._node_index.mark_changed(gpu.node)

    def _leftover_bits(self, kind: GpuKind, gpu: GpuView) -> int:
        """Return a GPU's leftover slices as bits; the older rules ignore them."""
        return kind.warm_slots.to_bits(gpu.warm) if gpu.warm and not self.engine.picks_lowest_gpu_id else 0


def _lowest_rank(offer: GroupOffer) -> int | None:
    """Return the lowest rank in a bucket group; None where nothing is free."""
    group, number = offer
    live = group.buckets.all_occupied_ranks(number)
    return (live & -live).bit_length() - 1 if live else None


def _offer_cost(offer: GroupOffer, rank: int) -> PlacementCost:
    group, number = offer
    return group.kind.lowest_cost[number][group.kind.ranks.states_by_rank[number][rank]]


def _duplicate_error(gpu: GpuView) -> ValueError:
    return ValueError(f"GPU {gpu.gpu} is already in the pool; remove it before adding it again")
