"""Fleets that place requests by a rule and release them by number."""

from collections.abc import Sequence
from itertools import count as counted_from
from typing import Protocol

from bench.placement_policies.gpu_profiles import FULL, TABLE, WHOLE
from bench.placement_policies.minimum_gpu_count import MinimumGpus
from bench.placement_policies.workloads import Request
from broker.domain.placement.buckets.state_buckets import EmptyGpus, StateBuckets
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import EMPTY


class Fleet(Protocol):
    """Interface of a policy in the experiments."""

    moves: int

    def place(self, number: int, request: Request) -> bool:
        """Place a request and return True, or change nothing and return False."""
        ...

    def release(self, number: int) -> None: ...

    def active(self) -> int:
        """Return how many GPUs are not empty."""
        ...


def node_with(empty: EmptyGpus, count: int) -> int | None:
    """Return the node with fewest empty GPUs that has at least this many."""
    try:
        return next(nodes[-1] for number in counted_from(count) if (nodes := empty.nodes_with(number)))
    except IndexError:  # no node ever had so many
        return None


class Bucketed:
    """GPUs in buckets; the rule's first choice is taken."""

    def __init__(self, ranks: StateRanks, nodes: Sequence[int]) -> None:
        self.buckets, self.moves = StateBuckets(ranks, nodes), 0
        self._full = ranks.table.options[WHOLE][EMPTY][0].next_state
        self.held: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def place(self, number: int, request: Request) -> bool:
        if request.count > 1:
            return self._place_gang(number, request.count)
        slot = self.buckets.place_cheapest(request.profile)
        if slot is None:
            return False
        self.held[number] = request.profile, [slot]
        return True

    def _place_gang(self, number: int, count: int) -> bool:
        empty = self.buckets.empty
        node = node_with(empty, count)
        if node is None:
            return False
        gpus = empty.gpus_on_node[node][-count:]
        for gpu in gpus:
            self.buckets.set_state(gpu, self._full)
        self.held[number] = WHOLE, [(gpu, 0) for gpu in gpus]
        return True

    def release(self, number: int) -> None:
        profile, slots = self.held.pop(number)
        for gpu, start in slots:
            self.buckets.release(gpu, profile, start)

    def active(self) -> int:
        return len(self.buckets.state_of) - len(self.buckets.gpus_by_state[EMPTY])


class FirstFit:
    """First GPU on which the request fits; a rule chooses only the placement."""

    def __init__(self, ranks: StateRanks, nodes: Sequence[int]) -> None:
        self.ranks, self.node, self.moves = ranks, list(nodes), 0
        self.state = [EMPTY] * len(nodes)
        self.room = [(1 << len(nodes)) - 1] * len(ranks.states_by_rank)  # by profile, a bit for every GPU it fits on
        self.on: list[list[int]] = [[] for _ in range(max(nodes) + 1)]
        for gpu, node in enumerate(nodes):
            self.on[node].append(gpu)
        self.held: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def place(self, number: int, request: Request) -> bool:
        if request.count > 1:
            return self._place_gang(number, request.count)
        room = self.room[request.profile]
        if not room:
            return False
        gpu = (room & -room).bit_length() - 1
        start, after = self.ranks.best_option[request.profile][self.state[gpu]]
        self._become(gpu, after)
        self.held[number] = request.profile, [(gpu, start)]
        return True

    def _place_gang(self, number: int, count: int) -> bool:
        for gpus in self.on:
            empty = [gpu for gpu in gpus if self.state[gpu] == EMPTY][:count]
            if len(empty) == count:
                for gpu in empty:
                    self._become(gpu, FULL)
                self.held[number] = WHOLE, [(gpu, 0) for gpu in empty]
                return True
        return False

    def release(self, number: int) -> None:
        profile, slots = self.held.pop(number)
        for gpu, start in slots:
            self._become(gpu, TABLE.state_after_removing(self.state[gpu], profile, start))

    def _become(self, gpu: int, state: int) -> None:
        before, self.state[gpu] = self.state[gpu], state
        for profile, bits in enumerate(self.ranks.rank_bit):
            if (not bits[before]) != (not bits[state]):
                self.room[profile] ^= 1 << gpu

    def active(self) -> int:
        return len(self.state) - self.room[WHOLE].bit_count()


class Oracle:
    """Upper bound that may repack everything at any moment, and ignores nodes."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.gpus, self.moves = len(nodes), 0
        self.minimum = MinimumGpus(TABLE)
        self.held: dict[int, Request] = {}

    def place(self, number: int, request: Request) -> bool:
        self.hold(number, request)
        if self.minimum.gpus <= self.gpus:
            return True
        self.release(number)
        return False

    def hold(self, number: int, request: Request) -> None:
        """Place a request whether or not it fits."""
        self.held[number] = request
        for _ in range(request.count):
            self.minimum.add(request.profile)

    def release(self, number: int) -> None:
        request = self.held.pop(number)
        for _ in range(request.count):
            self.minimum.remove(request.profile)

    def active(self) -> int:
        return self.minimum.gpus
