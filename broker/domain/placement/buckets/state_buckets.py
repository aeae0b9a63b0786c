"""GPUs of one kind grouped by state, so that a slot is looked up directly.

The time does not depend on the number of GPUs. GPUs, nodes, profiles and states are integers here: this
is the innermost loop of placement.
"""

from collections.abc import Iterable, Sequence

from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import EMPTY, NO_STATE


class StateBuckets:
    """GPUs in buckets of equal state.

    `occupied_ranks` has a bit map for each profile: one bit for every state in which there is a GPU, in rank order.
    """

    def __init__(self, ranks: StateRanks, nodes: Sequence[int], states: Sequence[int] | None = None) -> None:
        """Take one GPU per entry of `nodes`; all are empty unless `states` is given.

        An entry is the number of the GPU's node.
        """
        self.ranks, self.table = ranks, ranks.table
        self.node_of = list(nodes)
        self.state_of = [EMPTY] * len(nodes) if states is None else list(states)
        # The last bucket holds removed GPUs, whose state is NO_STATE.
        self.gpus_by_state: list[list[int]] = [[] for _ in (*self.table.states, NO_STATE)]
        self._position = [0] * len(nodes)  # by GPU, its position in its bucket
        self.occupied_ranks = [0] * len(self.table.profiles)
        self.empty = EmptyGpus(max(nodes, default=-1) + 1)
        for gpu, at in enumerate(self.state_of):
            self._position[gpu] = len(self.gpus_by_state[at])
            self.gpus_by_state[at].append(gpu)
        for at, bucket in enumerate(self.gpus_by_state):
            if bucket:
                self._mark_occupied(at)
        self.empty.add_all((self.node_of[gpu], gpu) for gpu in self.gpus_by_state[EMPTY])

    def place_cheapest(self, profile: int) -> tuple[int, int] | None:
        """Place a slice where it costs least; return GPU and first unit, or None."""
        live = self.occupied_ranks[profile]
        if not live:
            return None
        state = self.ranks.states_by_rank[profile][(live & -live).bit_length() - 1]
        gpu = self.gpus_by_state[state][-1] if state else self.empty.gpu_on_lowest_count_node()
        start, after = self.ranks.best_option[profile][state]
        self.set_state(gpu, after)
        return gpu, start

    def release(self, gpu: int, profile: int, start: int) -> None:
        """Remove a slice; raise KeyError for one that is not there."""
        after = self.table.state_without[profile][start][self.state_of[gpu]]
        if after == NO_STATE:
            raise KeyError(f"no slice of profile {profile} is at unit {start} of GPU {gpu}")
        self.set_state(gpu, after)

    def place_at(self, gpu: int, profile: int, start: int) -> None:
        """Place a slice at a given placement; raise KeyError where it does not fit."""
        after = self.table.state_with[profile][start][self.state_of[gpu]]
        if after == NO_STATE:
            raise KeyError(f"profile {profile} does not fit at unit {start} of GPU {gpu}")
        self.set_state(gpu, after)

    def add(self, node: int, state: int = EMPTY) -> int:
        """Add one more GPU and return its number."""
        gpu = len(self.node_of)
        self.node_of.append(node)
        self.state_of.append(state)
        self._position.append(0)
        self.empty.ensure_nodes(node + 1)
        self._enter(gpu, state)
        return gpu

    def remove(self, gpu: int) -> None:
        """Remove a GPU; raise KeyError if it was removed already.

        Its number is used again only where a caller says so.
        """
        if self.state_of[gpu] == NO_STATE:
            raise KeyError(f"GPU {gpu} is already out of service")
        self.set_state(gpu, NO_STATE)

    def set_state(self, gpu: int, state: int) -> None:
        """Set the state of a GPU."""
        if self.state_of[gpu] != state:
            self._leave(gpu)
            self._enter(gpu, state)

    def _leave(self, gpu: int) -> None:
        before = self.state_of[gpu]
        bucket, at = self.gpus_by_state[before], self._position[gpu]
        last = bucket.pop()
        if last != gpu:
            bucket[at], self._position[last] = last, at
        if not bucket:
            for profile, bits in enumerate(self.ranks.rank_bit):
                self.occupied_ranks[profile] &= ~bits[before]
        if before == EMPTY:
            self.empty.remove(self.node_of[gpu], gpu)

    def _enter(self, gpu: int, state: int) -> None:
        bucket = self.gpus_by_state[state]
        if not bucket:
            self._mark_occupied(state)
        self.state_of[gpu], self._position[gpu] = state, len(bucket)
        bucket.append(gpu)
        if state == EMPTY:
            self.empty.add(self.node_of[gpu], gpu)

    def _mark_occupied(self, state: int) -> None:
        for profile, bits in enumerate(self.ranks.rank_bit):
            self.occupied_ranks[profile] |= bits[state]


class EmptyGpus:
    """Empty GPUs, by how many there are on their node.

    The node with fewest is used first, so that whole nodes stay whole.
    """

    def __init__(self, nodes: int) -> None:
        self.gpus_on_node: list[list[int]] = [[] for _ in range(nodes)]
        self._nodes_by_count: list[list[int]] = [[]]  # nodes by their number of empty GPUs
        self._position = [0] * nodes
        self._counts = 0  # one bit for every count that some node has, from 1 up

    def add_all(self, gpus: Iterable[tuple[int, int]]) -> None:
        """Add the first GPUs, given as pairs of node and GPU."""
        for node, gpu in gpus:
            self.gpus_on_node[node].append(gpu)
        for node in range(len(self.gpus_on_node)):
            self._join(node)

    def ensure_nodes(self, nodes: int) -> None:
        """Make room for nodes of higher numbers."""
        more = nodes - len(self.gpus_on_node)
        if more > 0:
            self.gpus_on_node += [[] for _ in range(more)]
            self._position += [0] * more

    @property
    def lowest_count(self) -> int:
        """The number of empty GPUs on the node with fewest; 0 if none."""
        return (self._counts & -self._counts).bit_length()

    def gpu_on_lowest_count_node(self) -> int:
        """Return an empty GPU of the node with fewest; there must be one."""
        return self.gpus_on_node[self._nodes_by_count[(self._counts & -self._counts).bit_length()][-1]][-1]

    def nodes_with(self, count: int) -> Sequence[int]:
        """Return the nodes that have exactly this many."""
        return self._nodes_by_count[count]

    def add(self, node: int, gpu: int) -> None:
        self._leave(node)
        self.gpus_on_node[node].append(gpu)
        self._join(node)

    def remove(self, node: int, gpu: int) -> None:
        self._leave(node)
        self.gpus_on_node[node].remove(gpu)
        self._join(node)

    def _leave(self, node: int) -> None:
        if not (count := len(self.gpus_on_node[node])):
            return
        nodes, at = self._nodes_by_count[count], self._position[node]
        last = nodes.pop()
        if last != node:
            nodes[at], self._position[last] = last, at
        if not nodes:
            self._counts &= ~(1 << (count - 1))

    def _join(self, node: int) -> None:
        if not (count := len(self.gpus_on_node[node])):
            return
        while len(self._nodes_by_count) <= count:
            self._nodes_by_count.append([])
        self._position[node] = len(self._nodes_by_count[count])
        self._nodes_by_count[count].append(node)
        self._counts |= 1 << (count - 1)
