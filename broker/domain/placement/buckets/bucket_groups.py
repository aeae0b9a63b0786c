"""Bucket groups: the GPUs of one kind in one pool, by number and id.

Buckets use the numbers, everything else the ids.
"""

from collections.abc import Iterator, Sequence

from broker.domain.placement.buckets.lowest_names import LowestNames
from broker.domain.placement.buckets.warm_buckets import WarmBuckets
from broker.domain.placement.costs.state_tables import EMPTY, NOWHERE
from broker.domain.placement.gpu_kinds import GpuKind


class NodeNumbers:
    """The nodes of a pool by number and by name."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
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
        left: Sequence[int],
        known: NodeNumbers,
    ) -> None:
        """Take GPUs with the numbers of their nodes; `known` maps node numbers to names."""
        self.kind, self.buckets = kind, WarmBuckets(kind.ranks, nodes, states, left, kind.slots)
        self.gpus, self._known = list(gpus), known
        self._at = {gpu_id: gpu for gpu, gpu_id in enumerate(self.gpus)}
        self._gone: list[int] = []  # numbers of removed GPUs, for reuse
        self._gpus = LowestNames(self._is_in)
        self._nodes = LowestNames(self._has_empty)

    def state(self, gpu: str) -> int:
        return self.buckets.state[self._at[gpu]]

    def add(self, gpu_id: str, node: int, state: int, left: int) -> None:
        """Add a GPU with its leftover slices."""
        if self._gone:
            gpu = self._gone.pop()
            self.gpus[gpu] = gpu_id
            self.buckets.add_again(gpu, node, state, left)
        else:
            gpu = self.buckets.add(node, state, left)
            self.gpus.append(gpu_id)
        self._at[gpu_id] = gpu
        self._changed(gpu, NOWHERE)

    def remove(self, gpu: str) -> None:
        """Remove a GPU."""
        self.become(gpu, NOWHERE, 0)
        self._gone.append(self._at.pop(gpu))

    def become(self, gpu_id: str, state: int, left: int) -> None:
        """Set the state and the leftover slices of a GPU."""
        gpu = self._at[gpu_id]
        before = self.buckets.state[gpu]
        self.buckets.be(gpu, state, left)
        self._changed(gpu, before)

    def first(self, state: int) -> str:
        """Return the lowest GPU id in a state, without leftover slices.

        There must be one.
        """
        return self._lowest(state, self.buckets.gpus[state])

    def quickest(self, number: int, rank: int) -> tuple[str, int]:
        """Return the GPU and first unit that provide a profile most quickly.

        Only GPUs that cost as much as a rank are considered. Among equals it is one in the state that
        comes first, and of these the one with the lowest id.
        """
        buckets, bits = self.buckets, self.kind.ranks.rank_bit[number]
        _, cells, cold = buckets.offer(number, rank)
        if not cells:
            state = self.kind.ranks.states_by_rank[number][(cold & -cold).bit_length() - 1]
            return self.first(state), self.kind.ranks.best_option[number][state].start
        named = buckets.named(cells)
        first = min([cold & -cold] * bool(cold) + [bits[cell.state] for cell in named])
        found = [
            (self._lowest(buckets.key_of(cell), cell.gpus), cell.ways[number][1])
            for cell in named
            if bits[cell.state] == first
        ]
        if cold & first:
            state = self.kind.ranks.states_by_rank[number][first.bit_length() - 1]
            found.append((self.first(state), self.kind.ranks.best_option[number][state].start))
        return min(found)

    def quickest_empty(self, number: int) -> tuple[str, int]:
        """Return the same among empty GPUs of the node with fewest.

        So whole nodes stay whole for gangs. There must be one.
        """
        empty = self.buckets.empty
        nodes = empty.with_(empty.fewest)
        name = self._nodes.first(empty.fewest, lambda: map(self._known.names.__getitem__, nodes))
        ways = [
            (how, self.gpus[gpu], start)
            for gpu in empty.on[self._known.numbers[name]]
            for how, start in [self.buckets.start_of(number, gpu)]
        ]
        return min(ways)[1:]

    def gpus_in(self, state: int) -> Iterator[tuple[str, str]]:
        """Yield all GPUs in a state, each with its node."""
        for gpu in self.buckets.in_state(state):
            yield self.gpus[gpu], self._known.names[self.buckets.node[gpu]]

    def _changed(self, gpu: int, before: int) -> None:
        state, empty = self.buckets.state[gpu], self.buckets.empty
        self._gpus.enter(self.buckets.key(gpu), self.gpus[gpu], len(self.buckets.beside(gpu)))
        node = self.buckets.node[gpu]
        if EMPTY in (before, state) and (count := len(empty.on[node])):
            self._nodes.enter(count, self._known.names[node], len(empty.with_(count)))

    def _lowest(self, key: int, gpus: Sequence[int]) -> str:
        return self._gpus.first(key, lambda: map(self.gpus.__getitem__, gpus))

    def _is_in(self, key: int, gpu_id: str) -> bool:
        gpu = self._at.get(gpu_id)
        return gpu is not None and self.buckets.key(gpu) == key

    def _has_empty(self, count: int, name: str) -> bool:
        return len(self.buckets.empty.on[self._known.numbers[name]]) == count
