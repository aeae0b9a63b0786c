"""GPUs of one kind grouped by state, so that a slot is looked up directly.

The time does not depend on the number of GPUs. GPUs, nodes, profiles and states are integers here: this
is the innermost loop of placement.
"""

from collections.abc import Iterable, Sequence

from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import EMPTY, NOWHERE


class StateBuckets:
    """GPUs in buckets of equal state.

    By profile there is a bit map with one bit for every state in which there is a GPU.
    """

    def __init__(self, ranks: StateRanks, nodes: Sequence[int], states: Sequence[int] | None = None) -> None:
        """Take one GPU per entry of `nodes`; all are empty unless `states` is given.

        An entry is the number of the GPU's node.
        """
        self.ranks, self.table = ranks, ranks.table
        self.node = list(nodes)
        self.state = [EMPTY] * len(nodes) if states is None else list(states)
        # The last bucket holds removed GPUs, whose state is NOWHERE.
        self.gpus: list[list[int]] = [[] for _ in (*self.table.states, NOWHERE)]
        self._at = [0] * len(nodes)  # by GPU, its position in its bucket
        self.live = [0] * len(self.table.profiles)
        self.empty = EmptyGpus(max(nodes, default=-1) + 1)
        for gpu, at in enumerate(self.state):
            self._at[gpu] = len(self.gpus[at])
            self.gpus[at].append(gpu)
        for at, bucket in enumerate(self.gpus):
            if bucket:
                self._light(at)
        self.empty.fill((self.node[gpu], gpu) for gpu in self.gpus[EMPTY])

    def place(self, profile: int) -> tuple[int, int] | None:
        """Place a slice where it costs least; return GPU and first unit, or None."""
        live = self.live[profile]
        if not live:
            return None
        state = self.ranks.states_by_rank[profile][(live & -live).bit_length() - 1]
        gpu = self.gpus[state][-1] if state else self.empty.first()
        start, after = self.ranks.best_option[profile][state]
        self.become(gpu, after)
        return gpu, start

    def release(self, gpu: int, profile: int, start: int) -> None:
        """Remove a slice; raise KeyError for one that is not there."""
        after = self.table.state_without[profile][start][self.state[gpu]]
        if after == NOWHERE:
            raise KeyError(f"no slice of profile {profile} is at unit {start} of GPU {gpu}")
        self.become(gpu, after)

    def hold(self, gpu: int, profile: int, start: int) -> None:
        """Place a slice at a given placement; raise KeyError where it does not fit."""
        after = self.table.state_with[profile][start][self.state[gpu]]
        if after == NOWHERE:
            raise KeyError(f"profile {profile} does not fit at unit {start} of GPU {gpu}")
        self.become(gpu, after)

    def add(self, node: int, state: int = EMPTY) -> int:
        """Add one more GPU and return its number."""
        gpu = len(self.node)
        self.node.append(node)
        self.state.append(state)
        self._at.append(0)
        self.empty.grow(node + 1)
        self._enter(gpu, state)
        return gpu

    def remove(self, gpu: int) -> None:
        """Remove a GPU; raise KeyError if it was removed already.

        Its number is used again only where a caller says so.
        """
        if self.state[gpu] == NOWHERE:
            raise KeyError(f"GPU {gpu} is already out of service")
        self.become(gpu, NOWHERE)

    def become(self, gpu: int, state: int) -> None:
        """Set the state of a GPU."""
        if self.state[gpu] != state:
            self._leave(gpu)
            self._enter(gpu, state)

    def _leave(self, gpu: int) -> None:
        before = self.state[gpu]
        bucket, at = self.gpus[before], self._at[gpu]
        last = bucket.pop()
        if last != gpu:
            bucket[at], self._at[last] = last, at
        if not bucket:
            for profile, bits in enumerate(self.ranks.rank_bit):
                self.live[profile] &= ~bits[before]
        if before == EMPTY:
            self.empty.take(self.node[gpu], gpu)

    def _enter(self, gpu: int, state: int) -> None:
        bucket = self.gpus[state]
        if not bucket:
            self._light(state)
        self.state[gpu], self._at[gpu] = state, len(bucket)
        bucket.append(gpu)
        if state == EMPTY:
            self.empty.give(self.node[gpu], gpu)

    def _light(self, state: int) -> None:
        for profile, bits in enumerate(self.ranks.rank_bit):
            self.live[profile] |= bits[state]


class EmptyGpus:
    """Empty GPUs, by how many there are on their node.

    The node with fewest is used first, so that whole nodes stay whole.
    """

    def __init__(self, nodes: int) -> None:
        self.on: list[list[int]] = [[] for _ in range(nodes)]
        self._with: list[list[int]] = [[]]  # nodes by their number of empty GPUs
        self._at = [0] * nodes
        self._counts = 0  # one bit for every count that some node has, from 1 up

    def fill(self, gpus: Iterable[tuple[int, int]]) -> None:
        """Add the first GPUs, given as pairs of node and GPU."""
        for node, gpu in gpus:
            self.on[node].append(gpu)
        for node in range(len(self.on)):
            self._join(node)

    def grow(self, nodes: int) -> None:
        """Make room for nodes of higher numbers."""
        more = nodes - len(self.on)
        if more > 0:
            self.on += [[] for _ in range(more)]
            self._at += [0] * more

    @property
    def fewest(self) -> int:
        """The number of empty GPUs on the node with fewest; 0 if none."""
        return (self._counts & -self._counts).bit_length()

    def first(self) -> int:
        """Return an empty GPU of the node with fewest; there must be one."""
        return self.on[self._with[(self._counts & -self._counts).bit_length()][-1]][-1]

    def with_(self, count: int) -> Sequence[int]:
        """Return the nodes that have exactly this many."""
        return self._with[count]

    def give(self, node: int, gpu: int) -> None:
        self._leave(node)
        self.on[node].append(gpu)
        self._join(node)

    def take(self, node: int, gpu: int) -> None:
        self._leave(node)
        self.on[node].remove(gpu)
        self._join(node)

    def _leave(self, node: int) -> None:
        if not (count := len(self.on[node])):
            return
        nodes, at = self._with[count], self._at[node]
        last = nodes.pop()
        if last != node:
            nodes[at], self._at[last] = last, at
        if not nodes:
            self._counts &= ~(1 << (count - 1))

    def _join(self, node: int) -> None:
        if not (count := len(self.on[node])):
            return
        while len(self._with) <= count:
            self._with.append([])
        self._at[node] = len(self._with[count])
        self._with[count].append(node)
        self._counts |= 1 << (count - 1)
