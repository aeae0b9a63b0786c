"""Bucket groups: the GPUs of one kind in one pool, by number and id.

Buckets use the numbers, everything else the ids.
"""

from collections.abc import Iterator, Sequence

from broker.domain.placement.buckets.lowest_names import LowestNames
from broker.domain.placement.buckets.warm_buckets import WarmBuckets
from broker.domain.placement.costs.state_tables import EMPTY, NO_STATE
from broker.domain.placement.gpu_kinds import GpuKind


class NodeNumbers:
    """The nodes of a pool by number and by name."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}

    def number_of(self, name: str) -> int:
        """Return the number of a node; a new node gets the next."""
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


class BucketGroup:
    """Equally partitioned GPUs in buckets and cells, with the lowest id of each.

    A bucket holds GPUs of equal state, a cell those with equal leftover slices as well.
    """

    def __init__(
        self,
        kind: GpuKind,
        gpus: Sequence[str],
        nodes: Sequence[int],
        states: Sequence[int],
        leftovers: Sequence[int],
        node_numbers: NodeNumbers,
    ) -> None:
        """Take GPUs with the numbers of their nodes; `node_numbers` maps them to names."""
        self.kind, self.buckets = kind, WarmBuckets(kind.ranks, nodes, states, leftovers, kind.warm_slots)
        self.gpus, self._node_numbers = list(gpus), node_numbers
        self._number_of = {gpu_id: gpu for gpu, gpu_id in enumerate(self.gpus)}
        self._free_numbers: list[int] = []  # numbers of removed GPUs, for reuse
        self._lowest_gpus = LowestNames(self._is_in)
        self._lowest_nodes = LowestNames(self._has_empty)

    def state_of(self, gpu: str) -> int:
        return self.buckets.state_of[self._number_of[gpu]]

    def add(self, gpu_id: str, node: int, state: int, leftovers: int) -> None:
        """Add a GPU with its leftover slices."""
        if self._free_numbers:
            gpu = self._free_numbers.pop()
            self.gpus[gpu] = gpu_id
            self.buckets.add_as(gpu, node, state, leftovers)
        else:
            gpu = self.buckets.add(node, state, leftovers)
            self.gpus.append(gpu_id)
        self._number_of[gpu_id] = gpu
        self._changed(gpu, NO_STATE)

    def remove(self, gpu: str) -> None:
        """Remove a GPU."""
        self.set_state(gpu, NO_STATE, 0)
        self._free_numbers.append(self._number_of.pop(gpu))

    def set_state(self, gpu_id: str, state: int, leftovers: int) -> None:
        """Set the state and the leftover slices of a GPU."""
        gpu = self._number_of[gpu_id]
        before = self.buckets.state_of[gpu]
        self.buckets.set_state_and_leftovers(gpu, state, leftovers)
        self._changed(gpu, before)

    def lowest_gpu_in(self, state: int) -> str:
        """Return the lowest GPU id in a state, without leftover slices.

        There must be one.
        """
        return self._lowest(state, self.buckets.gpus_by_state[state])

    def find_quickest_slot(self, number: int, rank: int) -> tuple[str, int]:
        """Return the GPU and first unit that provide a profile most quickly.

        Only GPUs that cost as much as a rank are considered. Among equals it is one in the state that
        comes first, and of these the one with the lowest id.
        """
        buckets, bits = self.buckets, self.kind.ranks.rank_bit[number]
        _, cells, cold = buckets.quickest_offer(number, rank)
        if not cells:
            state = self.kind.ranks.states_by_rank[number][(cold & -cold).bit_length() - 1]
            return self.lowest_gpu_in(state), self.kind.ranks.best_option[number][state].start
        named = buckets.cells_of_bits(cells)
        first = min([cold & -cold] * bool(cold) + [bits[cell.state] for cell in named])
        found = [
            (self._lowest(buckets.cell_key(cell), cell.gpus), cell.starts[number][1])
            for cell in named
            if bits[cell.state] == first
        ]
        if cold & first:
            state = self.kind.ranks.states_by_rank[number][first.bit_length() - 1]
            found.append((self.lowest_gpu_in(state), self.kind.ranks.best_option[number][state].start))
        return min(found)

    def find_quickest_empty_slot(self, number: int) -> tuple[str, int]:
        """Return the same among the empty GPUs of the node that has fewest.

        So whole nodes stay whole for gangs. There must be one.
        """
        empty = self.buckets.empty
        nodes = empty.nodes_with(empty.lowest_count)
        name = self._lowest_nodes.lowest(empty.lowest_count, lambda: map(self._node_numbers.names.__getitem__, nodes))
        ways = [
            (how, self.gpus[gpu], start)
            for gpu in empty.gpus_on_node[self._node_numbers.numbers[name]]
            for how, start in [self.buckets.quickest_start(number, gpu)]
        ]
        return min(ways)[1:]

    def gpus_in(self, state: int) -> Iterator[tuple[str, str]]:
        """Yield all GPUs in a state, each with its node."""
        for gpu in self.buckets.gpus_in_state(state):
            yield self.gpus[gpu], self._node_numbers.names[self.buckets.node_of[gpu]]

    def _changed(self, gpu: int, before: int) -> None:
        state, empty = self.buckets.state_of[gpu], self.buckets.empty
        self._lowest_gpus.add(self.buckets.bucket_key(gpu), self.gpus[gpu], len(self.buckets.gpus_in_same_bucket(gpu)))
        node = self.buckets.node_of[gpu]
        if EMPTY in (before, state) and (count := len(empty.gpus_on_node[node])):
            self._lowest_nodes.add(count, self._node_numbers.names[node], len(empty.nodes_with(count)))

    def _lowest(self, key: int, gpus: Sequence[int]) -> str:
        return self._lowest_gpus.lowest(key, lambda: map(self.gpus.__getitem__, gpus))

    def _is_in(self, key: int, gpu_id: str) -> bool:
        gpu = self._number_of.get(gpu_id)
        return gpu is not None and self.buckets.bucket_key(gpu) == key

    def _has_empty(self, count: int, name: str) -> bool:
        return len(self.buckets.empty.gpus_on_node[self._node_numbers.numbers[name]]) == count
