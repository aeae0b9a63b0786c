"""Fleet with relocations of a few slices, to make space or to empty a GPU."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.placement_policies.consolidation import consolidate_gpu
from bench.placement_policies.fleets import node_with
from bench.placement_policies.gpu_profiles import WHOLE
from bench.placement_policies.slice_room import make_room_for_slice
from bench.placement_policies.workloads import Request
from broker.domain.defragmentation.evacuation import evacuate_node
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import EMPTY


@dataclass(frozen=True)
class Freedom:
    """When slices may be relocated."""

    on_a_miss: bool  # for one that fits nowhere, and for a gang that fits on no node
    on_a_release: bool  # off a GPU on which little is left


class Moved:
    """GPUs in buckets, placed by a rule, with every slice relocatable."""

    def __init__(self, ranks: StateRanks, nodes: Sequence[int], freedom: Freedom) -> None:
        self.fleet, self.freedom, self.moves = SliceFleet(StateBuckets(ranks, nodes)), freedom, 0
        self.held: dict[int, tuple[str, ...]] = {}

    def place(self, number: int, request: Request) -> bool:
        if request.count > 1:
            return self._place_gang(number, request.count)
        piece = LiveSlice(str(number), request.profile, 0, cost=1)
        if not self.freedom.on_a_miss:
            if not self.fleet.place_cheapest(piece):
                return False
        elif made := make_room_for_slice(self.fleet, piece):
            self.moves += len(made.steps)
        else:
            return False
        self.held[number] = (piece.allocation,)
        return True

    def _place_gang(self, number: int, count: int) -> bool:
        # A gang stays where it is: a member moved alone would leave its node.
        gang = [LiveSlice(f"{number}.{member}", WHOLE, 0) for member in range(count)]
        empty = self.fleet.buckets.empty
        node = node_with(empty, count)
        if node is not None:
            for member, gpu in zip(gang, empty.gpus_on_node[node][-count:], strict=True):
                self.fleet.place_on(gpu, member)
        elif self.freedom.on_a_miss and (made := evacuate_node(self.fleet, gang)):
            self.moves += len(made.steps)
        else:
            return False
        self.held[number] = tuple(member.allocation for member in gang)
        return True

    def release(self, number: int) -> None:
        for allocation in self.held.pop(number):
            gpu = self.fleet.gpu_of[allocation]
            self.fleet.remove(allocation)
            if self.freedom.on_a_release:
                self.moves += len(consolidate_gpu(self.fleet, gpu))

    def active(self) -> int:
        return len(self.fleet.slices) - len(self.fleet.buckets.gpus_by_state[EMPTY])
