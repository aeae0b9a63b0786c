"""Buckets with leftover slices: among equal costs, prefer slots that need no partitioning.

GPUs without leftover slices lie in their buckets as before. The others lie in cells, one for each state
and set of leftover slices; which cells are occupied is one number, and by profile and cost another
tells on which of them a slot is available how quickly. So the cheapest slot is looked up as before, and
two more numbers tell the quickest among its equals.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.buckets.warm_slots import WarmSlots
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import EMPTY, NOWHERE
from broker.domain.placement.warm_slices import CutEffort

WarmStart = tuple[CutEffort, int]  # how a profile is available on a GPU, and its first unit there
# The quickest way to a profile at the least cost: how, the cells it is available in, and
# the ranks of states whose GPUs have no leftover slices.
CheapestOffer = tuple[CutEffort, int, int]
# Local names: an enumeration lookup would take as long as the rest of a step here.
WARM, FREE, ANEW = CutEffort
NO_START = ANEW, NOWHERE


class WarmCell:
    """GPUs in one state with the same leftover slices."""

    __slots__ = ("bit", "gpus", "number", "state", "ways")

    def __init__(self, state: int, number: int, ways: tuple[WarmStart, ...]) -> None:
        self.state, self.number, self.bit = state, number, 1 << number
        self.ways = ways  # by profile
        self.gpus: list[int] = []


class WarmBuckets(StateBuckets):
    """GPUs in buckets of equal state and in cells."""

    def __init__(
        self,
        ranks: StateRanks,
        nodes: Sequence[int],
        states: Sequence[int] | None = None,
        left: Sequence[int] | None = None,
        slots: WarmSlots | None = None,
    ) -> None:
        """Take one GPU per entry; `left` are its leftover slices, numbered by `slots`."""
        super().__init__(ranks, nodes, states)
        self.slots = slots or WarmSlots(ranks)
        self._bit, self._keeps = self.slots.bit, self.slots.keeps
        self._order, self._level = ranks.states_by_rank, ranks.first_equal_rank
        self.left = [0] * len(nodes)
        self.cells: list[WarmCell] = []
        self._in: list[WarmCell | None] = [None] * len(nodes)  # by GPU
        self.cutting = FREE  # partitioning needed by the last placed slice
        self._cell: dict[tuple[int, int], WarmCell] = {}
        self._of_state: defaultdict[int, list[WarmCell]] = defaultdict(list)
        self._present = 0  # the cells that are not empty
        self._warm = [0] * (len(ranks.table.states) + 1)  # by state, the number of GPUs in cells
        self._live = [0] * len(ranks.states_by_rank)  # like `live`, for GPUs in cells
        # By partitioning effort and profile, then by level, the cells where it is available so.
        self._had = [[[0] * len(its) for its in ranks.states_by_rank] for _ in CutEffort]
        # By profile and level, all ranks of it.
        self._equals = [_ranks_by_level(levels) for levels in ranks.first_equal_rank]
        for gpu, bits in enumerate(left or ()):
            if bits:
                self.be(gpu, self.state[gpu], bits)

    def fits_at(self, profile: int) -> int:
        """Return one bit for every rank at which there is a GPU."""
        return self.live[profile] | self._live[profile]

    def count(self, state: int) -> int:
        """Return the number of GPUs in a state."""
        return len(self.gpus[state]) + self._warm[state]

    def in_state(self, state: int) -> Iterator[int]:
        """Yield all GPUs in a state."""
        yield from self.gpus[state]
        for cell in self._of_state.get(state, ()):
            yield from cell.gpus

    def offer(self, profile: int, rank: int) -> CheapestOffer:
        """Return the quickest way to provide a profile at the cost of a rank."""
        level = self._level[profile][rank]
        present, (warm, free, anew) = self._present, self._had
        if cells := present & warm[profile][level]:
            return WARM, cells, 0
        cells = present & free[profile][level]
        if (cold := self.live[profile] & self._equals[profile][level]) or cells:
            return FREE, cells, cold
        return ANEW, present & anew[profile][level], 0

    def place(self, profile: int) -> tuple[int, int] | None:
        live = self.live[profile] | self._live[profile]
        if not live:
            return None
        rank = (live & -live).bit_length() - 1
        order = self._order[profile]
        if order[rank] == EMPTY:
            self.cutting, gpu, start = self.first_empty(profile)
        else:
            self.cutting, cells, cold = self.offer(profile, rank)
            if cold:
                state = order[(cold & -cold).bit_length() - 1]
                gpu, (start, after) = self.gpus[state][-1], self.ranks.best_option[profile][state]
                self.be(gpu, after, 0)
                return gpu, start
            cell = self.cells[(cells & -cells).bit_length() - 1]
            gpu, (_, start) = cell.gpus[-1], cell.ways[profile]
        after = self.table.state_with[profile][start][self.state[gpu]]
        self.be(gpu, after, self.left[gpu] & self._keeps[profile][start])
        return gpu, start

    def first_empty(self, profile: int) -> tuple[CutEffort, int, int]:
        """Return how, on which GPU and where to place on an empty GPU.

        The GPU is on the node with fewest empty GPUs.
        """
        if not self._warm[EMPTY]:
            return FREE, self.empty.first(), self.ranks.best_option[profile][EMPTY].start
        gpus = self.empty.on[self.node[self.empty.first()]]
        (how, start), _, gpu = min((self.start_of(profile, gpu), -n, gpu) for n, gpu in enumerate(gpus))
        return how, gpu, start

    def start_of(self, profile: int, gpu: int) -> WarmStart:
        """Return how and where a profile is available on a GPU on which it fits.

        Of the starts that cost least it is the quickest.
        """
        cell = self._in[gpu]
        if cell is None:
            return FREE, self.ranks.best_option[profile][self.state[gpu]].start
        return cell.ways[profile]

    def hold(self, gpu: int, profile: int, start: int) -> None:
        after = self.table.state_with[profile][start][self.state[gpu]]
        if after == NOWHERE:
            raise KeyError(f"profile {profile} does not fit at unit {start} of GPU {gpu}")
        self.be(gpu, after, self.left[gpu] & self._keeps[profile][start])

    def release(self, gpu: int, profile: int, start: int) -> None:
        """Remove a slice, which is left over there; raise KeyError if not there."""
        after = self.table.state_without[profile][start][self.state[gpu]]
        if after == NOWHERE:
            raise KeyError(f"no slice of profile {profile} is at unit {start} of GPU {gpu}")
        self.be(gpu, after, self.left[gpu] | self._bit[profile][start])

    def be(self, gpu: int, state: int, left: int) -> None:
        """Set the state and the leftover slices of a GPU."""
        before = self.state[gpu]
        if self.left[gpu] == left and before == state:
            return
        cell = self._in[gpu]
        gpus, at = self.gpus[before] if cell is None else cell.gpus, self._at[gpu]
        last = gpus.pop()
        if last != gpu:
            gpus[at], self._at[last] = last, at
        if cell is not None:
            self._warm[before] -= 1
        if not gpus:
            self._dim(before, cell)
        self.left[gpu] = left
        cell = self._in[gpu] = (self._cell.get((state, left)) or self._new_cell(state, left)) if left else None
        gpus = self.gpus[state] if cell is None else cell.gpus
        if not gpus:
            self._light_up(state, cell)
        if cell is not None:
            self._warm[state] += 1
        self.state[gpu], self._at[gpu] = state, len(gpus)
        gpus.append(gpu)
        if before != state:
            if before == EMPTY:
                self.empty.take(self.node[gpu], gpu)
            elif state == EMPTY:
                self.empty.give(self.node[gpu], gpu)

    def become(self, gpu: int, state: int) -> None:
        """Set the state of a GPU, without leftover slices."""
        self.be(gpu, state, 0)

    def add(self, node: int, state: int = EMPTY, left: int = 0) -> int:
        """Add a GPU with its leftover slices and return its number."""
        self.left.append(0)
        self._in.append(None)
        gpu = super().add(node, state)
        self.be(gpu, state, left)
        return gpu

    def add_again(self, gpu: int, node: int, state: int, left: int = 0) -> None:
        """Add a GPU under the number of a removed one, with its leftover slices."""
        self.node[gpu] = node
        self.empty.grow(node + 1)
        self.be(gpu, state, left)

    def named(self, cells: int) -> list[WarmCell]:
        """Return cells by their bits."""
        found = []
        while cells:
            bit = cells & -cells
            found.append(self.cells[bit.bit_length() - 1])
            cells ^= bit
        return found

    def key(self, gpu: int) -> int:
        """Return the number of the bucket or cell that a GPU is in."""
        cell = self._in[gpu]
        return self.state[gpu] if cell is None else self.key_of(cell)

    def key_of(self, cell: WarmCell) -> int:
        """Return the number of a cell, distinct from all bucket numbers."""
        return len(self.gpus) + cell.number

    def beside(self, gpu: int) -> Sequence[int]:
        """Return all GPUs of the bucket or cell that a GPU is in."""
        cell = self._in[gpu]
        return self.gpus[self.state[gpu]] if cell is None else cell.gpus

    def _dim(self, state: int, cell: WarmCell | None) -> None:
        """Record that a bucket or a cell became empty."""
        live = self.live if cell is None else self._live
        if cell is not None:
            self._present &= ~cell.bit
            if self._warm[state]:
                return
        for profile, bits in enumerate(self.ranks.rank_bit):
            live[profile] &= ~bits[state]

    def _light_up(self, state: int, cell: WarmCell | None) -> None:
        """Record that a bucket or a cell has a GPU."""
        live = self.live if cell is None else self._live
        if cell is not None:
            self._present |= cell.bit
            if self._warm[state]:
                return
        for profile, bits in enumerate(self.ranks.rank_bit):
            live[profile] |= bits[state]

    def _new_cell(self, state: int, left: int) -> WarmCell:
        """Create the cell of a new combination, and record how each profile fits there."""
        ranks, bit = self.ranks, 1 << len(self.cells)
        ways = []
        for profile, bits in enumerate(ranks.rank_bit):
            way = NO_START
            if bits[state]:
                way = self.slots.start_of(profile, state, left)
                level = ranks.first_equal_rank[profile][bits[state].bit_length() - 1]
                self._had[way[0]][profile][level] |= bit
            ways.append(way)
        cell = self._cell[state, left] = WarmCell(state, len(self.cells), tuple(ways))
        self.cells.append(cell)
        self._of_state[state].append(cell)
        return cell


def _ranks_by_level(levels: Sequence[int]) -> list[int]:
    """Return, by level, the bits of all its ranks."""
    equals = [0] * len(levels)
    for rank, level in enumerate(levels):
        equals[level] |= 1 << rank
    return equals
