"""The GPUs of one pool that are sold in shares.

A share has no real placement on its GPU, but it is recorded with units, so that none is sold twice. The
shared-GPU rule chooses the node and how full a GPU should be; among equally full GPUs on it the units
decide.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from zlib import crc32

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import GpuState
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.geometry.published_profiles import Partitioning
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.gpu_kinds import GpuKind, gpu_kind_of
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.shares.least_stranded import LeastStranded, StrandingWeights
from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, NodeCapacity, ShareRequest
from broker.domain.placement.shares.shared_nodes import ShareBid, SharedNodes
from broker.domain.placement.slots import Slot

# The node order only breaks ties: late in a long order, an old gap still beats an empty GPU.
WEIGHTS = StrandingWeights(fill_order=50.0)


class SharedNodeCapacity(NodeCapacity):
    """The shared GPUs of one node with one layout, by free thousandths.

    It covers shares that compete with each other.
    """

    __slots__ = ("gpus", "kind", "profile_numbers", "unpartitioned")

    def __init__(self, name: str, kind: GpuKind, shares: Iterable[Profile], *, unpartitioned: bool) -> None:
        """Begin without GPUs.

        Nodes are filled in the order of a hash of their names, so that all node classes are mixed.
        """
        super().__init__(cpu=0, memory=0, gpus=0, fill_order=crc32(name.encode()) / 2**32)
        self.kind, self.unpartitioned = kind, unpartitioned
        self.gpus: list[str] = []  # in the order of `free_by_gpu`
        self.profile_numbers = {
            _share_request(each, kind.table.grid): kind.profile_numbers[each.name, each.isolation] for each in shares
        }

    def set_gpu(self, gpu_id: str, gpu: GpuState) -> None:
        """Add or update a GPU."""
        if gpu_id not in self.gpus:
            self.gpus.append(gpu_id)
            self.free_by_gpu.append(0)
        self._set_free(self.gpus.index(gpu_id), self._sellable_milli(self.kind.state_of(gpu)))

    def remove_gpu(self, gpu: str) -> None:
        """Remove a GPU."""
        at = self.gpus.index(gpu)
        self._set_free(at, 0)
        del self.gpus[at], self.free_by_gpu[at]

    def equally_free_gpus(self, gpu: int) -> list[str]:
        """Return the GPUs with as much free as this one."""
        return [name for name, free in zip(self.gpus, self.free_by_gpu, strict=True) if free == self.free_by_gpu[gpu]]

    def _set_free(self, at: int, free_milli: int) -> None:
        self.free_milli += free_milli - self.free_by_gpu[at]
        self.unused_gpus += (free_milli == WHOLE_MILLI) - (self.free_by_gpu[at] == WHOLE_MILLI)
        self.free_by_gpu[at] = free_milli

    def _sellable_milli(self, state: int) -> int:
        """Return the sellable thousandths of a GPU in a state.

        No more is returned than every share up to it finds room in.
        """
        free = {
            each.share: self.kind.max_instances[number][state] * each.share
            for each, number in self.profile_numbers.items()
        }
        most = max(free.values())
        largest = max((share for share, fits in free.items() if fits), default=0)
        scattered = any(largest < share <= most for share in free)
        return largest if scattered else most


class PerNodeRule:
    """Each node bids by its own rule.

    Where GPUs are partitioned already, no whole GPU can be lost.
    """

    def bid(self, node: NodeCapacity, request: ShareRequest) -> ShareBid | None:
        if not isinstance(node, SharedNodeCapacity) or request not in node.profile_numbers:
            return None
        return _share_rule(tuple(node.profile_numbers), node.unpartitioned).bid(node, request)


class SharePool:
    """The GPUs of one GpuModel sold in shares of one isolation.

    It has the interface of a PoolIndex. Its choice depends on the GPUs alone, never on their order or
    history.
    """

    def __init__(self, model: GpuModelSpec, isolation: Isolation, gpus: Iterable[GpuView] = ()) -> None:
        self.model, self._isolation = model, isolation
        self._share_numbers = {share: n for n, share in enumerate(model.profiles_with(isolation))}
        self._fits = PoolIndex(model)
        self._nodes = SharedNodes(
            [], [_share_request(share, model.grid) for share in self._share_numbers], PerNodeRule()
        )
        self._capacities: list[SharedNodeCapacity] = []
        self._at: dict[tuple[str, Partitioning], list[int]] = {}  # indexes of the capacity records of a node's GPUs
        for gpu in gpus:
            self.add(gpu)

    def add(self, gpu: GpuView) -> None:
        """Add a GPU; raise ValueError when it is in the pool already."""
        self._fits.add(gpu)
        self._update_fit(gpu)

    def mark_links_changed(self, node: str) -> None:
        """Do nothing: shares have no links."""

    def remove(self, gpu_id: str) -> GpuView:
        """Remove a GPU and return its present view."""
        gpu = self._fits.remove(gpu_id)
        for at in self._at[gpu.node, gpu.layout]:
            self._capacities[at].remove_gpu(gpu_id)
            self._nodes.mark_changed(at)
        return gpu

    def gpu_view(self, gpu: str) -> GpuView:
        return self._fits.gpu_view(gpu)

    def hold(self, slot: Slot, profile: Profile) -> None:
        """Take a slot; raise ValueError when it is not free."""
        self._fits.hold(slot, profile)
        self._update_fit(self._fits.gpu_view(slot.gpu))

    def release(self, slot: Slot, profile: Profile) -> None:
        """Free a slot; raise ValueError when it was not held."""
        self._fits.release(slot, profile)
        self._update_fit(self._fits.gpu_view(slot.gpu))

    def find_cheapest_slot(self, profile: Profile) -> Slot | None:
        """Return the free slot that costs least, or None when there is none."""
        if profile not in self._share_numbers:
            raise ValueError(f"{self.model.name} shared as {self._isolation} is not sold as {profile.name!r}")
        held = self._nodes.find_cheapest(self._share_numbers[profile])
        if held is None:
            return None
        capacity = self._capacities[held.node]
        kind, number = capacity.kind, capacity.profile_numbers[_share_request(profile, self.model.grid)]
        states = {
            gpu: kind.state_of(self._fits.gpu_view(gpu).state) for gpu in capacity.equally_free_gpus(held.gpus[0])
        }
        gpu = min(states, key=lambda each: (kind.lowest_cost[number][states[each]], each))
        return Slot(gpu, Placement(kind.ranks.best_option[number][states[gpu]].start, profile.memory))

    def how_many_fit(self, profile: Profile) -> int:
        """Return exactly how many of a profile could be placed now, in sequence."""
        return self._fits.how_many_fit(profile)

    def _update_fit(self, gpu: GpuView) -> None:
        """Update the capacity records of a GPU."""
        key = gpu.node, gpu.layout
        if key not in self._at:
            self._at[key] = [self._add_capacity(capacity) for capacity in self._capacities_of(*key)]
        for at in self._at[key]:
            self._capacities[at].set_gpu(gpu.gpu, gpu.state)
            self._nodes.mark_changed(at)

    def _add_capacity(self, capacity: SharedNodeCapacity) -> int:
        self._capacities.append(capacity)
        return self._nodes.add_node(capacity)

    def _capacities_of(self, node: str, layout: Partitioning) -> Iterator[SharedNodeCapacity]:
        """Yield the capacity records of a node's GPUs.

        In a fixed layout each placement is for one share and does not compete with others.
        """
        kind = gpu_kind_of(self.model, layout)
        shares = [each for each in kind.table.profiles if each.isolation is self._isolation]
        if layout is None:
            yield SharedNodeCapacity(node, kind, shares, unpartitioned=True)
            return
        for share in shares:
            yield SharedNodeCapacity(f"{node} {layout} {share.name}", kind, [share], unpartitioned=False)


def _share_request(share: Profile, grid: int) -> ShareRequest:
    """Return a share as a request to the rule.

    It requests no processors or memory: a share brings its part of the node, so these limit nothing.
    """
    return ShareRequest(cpu=0, memory=0, gpus=1, share=share.memory * WHOLE_MILLI // grid)


@lru_cache(maxsize=256)
def _share_rule(sold: tuple[ShareRequest, ...], unpartitioned: bool) -> LeastStranded:
    """Return the rule for GPUs sold in these shares, and whole while unpartitioned.

    Future demand is unknown, so all are assumed equally frequent.
    """
    weights = dict.fromkeys(sold, 1.0)
    if unpartitioned:
        weights[ShareRequest(cpu=0, memory=0, gpus=1, share=WHOLE_MILLI)] = 1.0
    return LeastStranded(weights, WEIGHTS)
