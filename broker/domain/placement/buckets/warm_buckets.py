"""Buckets with leftover slices: among equal costs, prefer slots that need no partitioning.

GPUs without leftover slices are in their buckets as before. The others are in cells, one for each state
and set of leftover slices; which cells are occupied is one number, and by profile and cost another
tells on which of them a slot is available how quickly. So the cheapest slot is looked up as before, and
two more numbers tell the quickest among its equals.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.buckets.warm_slots import WarmSlots
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import EMPTY, NO_STATE
from broker.domain.placement.warm_slices import PartitioningEffort

WarmStart = tuple[PartitioningEffort, int]  # how a profile is available on a GPU, and its first unit there
# The quickest way to a profile at the least cost: how, the cells it is available in, and
# the ranks of states whose GPUs have no leftover slices.
QuickestOffer = tuple[PartitioningEffort, int, int]
# Local names: an enumeration lookup would take as long as the rest of a step here.
REUSE, CREATE, REPLACE = PartitioningEffort
NO_START = REPLACE, NO_STATE


class WarmCell:
    """GPUs in one state with the same leftover slices."""

    __slots__ = ("bit", "gpus", "number", "starts", "state")

    def __init__(self, state: int, number: int, starts: tuple[WarmStart, ...]) -> None:
        self.state, self.number, self.bit = state, number, 1 << number
        self.starts = starts  # by profile
        self.gpus: list[int] = []


class WarmBuckets(StateBuckets):
    """GPUs in buckets of equal state and in cells."""

    def __init__(
        self,
        ranks: StateRanks,
        nodes: Sequence[int],
        states: Sequence[int] | None = None,
        leftovers: Sequence[int] | None = None,
        slots: WarmSlots | None = None,
    ) -> None:
        """Take one GPU per entry; `leftovers` are its leftover slices, numbered by `slots`."""
        super().__init__(ranks, nodes, states)
        self.slots = slots or WarmSlots(ranks)
        self._bit, self._keeps = self.slots.slot_bit, self.slots.surviving_bits
        self._order, self._level = ranks.states_by_rank, ranks.first_equal_rank
        self.leftovers = [0] * len(nodes)
        self.cells: list[WarmCell] = []
        self._cell_of: list[WarmCell | None] = [None] * len(nodes)  # by GPU
        self.last_effort = CREATE  # partitioning needed by the last placed slice
        self._cells_by_content: dict[tuple[int, int], WarmCell] = {}
        self._cells_by_state: defaultdict[int, list[WarmCell]] = defaultdict(list)
        self._occupied_cells = 0  # the cells that are not empty
        self._warm_counts = [0] * (len(ranks.table.states) + 1)  # by state, the number of GPUs in cells
        self._warm_ranks = [0] * len(ranks.states_by_rank)  # like `occupied_ranks`, for GPUs in cells
        # By partitioning effort and profile, then by level, the cells where it is available so.
        self._cells_by_effort = [[[0] * len(its) for its in ranks.states_by_rank] for _ in PartitioningEffort]
        # By profile and level, all ranks of it.
        self._ranks_of_level = [_ranks_by_level(levels) for levels in ranks.first_equal_rank]
        for gpu, bits in enumerate(leftovers or ()):
            if bits:
                self.set_state_and_leftovers(gpu, self.state_of[gpu], bits)

    def all_occupied_ranks(self, profile: int) -> int:
        """Return one bit for every rank at which there is a GPU."""
        return self.occupied_ranks[profile] | self._warm_ranks[profile]

    def gpu_count(self, state: int) -> int:
        """Return the number of GPUs in a state."""
        return len(self.gpus_by_state[state]) + self._warm_counts[state]

    def gpus_in_state(self, state: int) -> Iterator[int]:
        """Yield all GPUs in a state."""
        yield from self.gpus_by_state[state]
        for cell in self._cells_by_state.get(state, ()):
            yield from cell.gpus

    def quickest_offer(self, profile: int, rank: int) -> QuickestOffer:
        """Return the quickest way to provide a profile at the cost of a rank."""
        level = self._level[profile][rank]
        present, (warm, free, anew) = self._occupied_cells, self._cells_by_effort
        if cells := present & warm[profile][level]:
            return REUSE, cells, 0
        cells = present & free[profile][level]
        if (cold := self.occupied_ranks[profile] & self._ranks_of_level[profile][level]) or cells:
            return CREATE, cells, cold
        return REPLACE, present & anew[profile][level], 0

    def place_cheapest(self, profile: int) -> tuple[int, int] | None:
        live = self.occupied_ranks[profile] | self._warm_ranks[profile]
        if not live:
            return None
        rank = (live & -live).bit_length() - 1
        order = self._order[profile]
        if order[rank] == EMPTY:
            self.last_effort, gpu, start = self.quickest_on_empty_gpu(profile)
        else:
            self.last_effort, cells, cold = self.quickest_offer(profile, rank)
            if cold:
                state = order[(cold & -cold).bit_length() - 1]
                gpu, (start, after) = self.gpus_by_state[state][-1], self.ranks.best_option[profile][state]
                self.set_state_and_leftovers(gpu, after, 0)
                return gpu, start
            cell = self.cells[(cells & -cells).bit_length() - 1]
            gpu, (_, start) = cell.gpus[-1], cell.starts[profile]
        after = self.table.state_with[profile][start][self.state_of[gpu]]
        self.set_state_and_leftovers(gpu, after, self.leftovers[gpu] & self._keeps[profile][start])
        return gpu, start

    def quickest_on_empty_gpu(self, profile: int) -> tuple[PartitioningEffort, int, int]:
        """Return how, on which GPU and where to place on an empty GPU.

        The GPU is on the node with fewest empty GPUs.
        """
        if not self._warm_counts[EMPTY]:
            return CREATE, self.empty.gpu_on_lowest_count_node(), self.ranks.best_option[profile][EMPTY].start
        gpus = self.empty.gpus_on_node[self.node_of[self.empty.gpu_on_lowest_count_node()]]
        (how, start), _, gpu = min((self.quickest_start(profile, gpu), -n, gpu) for n, gpu in enumerate(gpus))
        return how, gpu, start

    def quickest_start(self, profile: int, gpu: int) -> WarmStart:
        """Return how and where a profile is available on a GPU on which it fits.

        Of the starts that cost least it is the quickest.
        """
        cell = self._cell_of[gpu]
        if cell is None:
            return CREATE, self.ranks.best_option[profile][self.state_of[gpu]].start
        return cell.starts[profile]

    def place_at(self, gpu: int, profile: int, start: int) -> None:
        after = self.table.state_with[profile][start][self.state_of[gpu]]
        if after == NO_STATE:
            raise KeyError(f"profile {profile} does not fit at unit {start} of GPU {gpu}")
        self.set_state_and_leftovers(gpu, after, self.leftovers[gpu] & self._keeps[profile][start])

    def release(self, gpu: int, profile: int, start: int) -> None:
        """Remove a slice, which is left over there; raise KeyError if not there."""
        after = self.table.state_without[profile][start][self.state_of[gpu]]
        if after == NO_STATE:
            raise KeyError(f"no slice of profile {profile} is at unit {start} of GPU {gpu}")
        self.set_state_and_leftovers(gpu, after, self.leftovers[gpu] | self._bit[profile][start])

    def set_state_and_leftovers(self, gpu: int, state: int, leftovers: int) -> None:
        """Set the state and the leftover slices of a GPU."""
        before = self.state_of[gpu]
        if self.leftovers[gpu] == leftovers and before == state:
            return
        cell = self._cell_of[gpu]
        gpus, at = self.gpus_by_state[before] if cell is None else cell.gpus, self._position[gpu]
        last = gpus.pop()
        if last != gpu:
            gpus[at], self._position[last] = last, at
        if cell is not None:
            self._warm_counts[before] -= 1
        if not gpus:
            self._mark_emptied(before, cell)
        self.leftovers[gpu] = leftovers
        cell = self._cell_of[gpu] = (
            (self._cells_by_content.get((state, leftovers)) or self._new_cell(state, leftovers)) if leftovers else None
        )
        gpus = self.gpus_by_state[state] if cell is None else cell.gpus
        if not gpus:
            self._mark_filled(state, cell)
        if cell is not None:
            self._warm_counts[state] += 1
        self.state_of[gpu], self._position[gpu] = state, len(gpus)
        gpus.append(gpu)
        if before != state:
            if before == EMPTY:
                self.empty.remove(self.node_of[gpu], gpu)
            elif state == EMPTY:
                self.empty.add(self.node_of[gpu], gpu)

    def set_state(self, gpu: int, state: int) -> None:
        """Set the state of a GPU, without leftover slices."""
        self.set_state_and_leftovers(gpu, state, 0)

    def add(self, node: int, state: int = EMPTY, leftovers: int = 0) -> int:
        """Add a GPU with its leftover slices and return its number."""
        self.leftovers.append(0)
        self._cell_of.append(None)
        gpu = super().add(node, state)
        self.set_state_and_leftovers(gpu, state, leftovers)
        return gpu

    def add_as(self, gpu: int, node: int, state: int, leftovers: int = 0) -> None:
        """Add a GPU under the number of a removed one, with its leftover slices."""
        self.node_of[gpu] = node
        self.empty.ensure_nodes(node + 1)
        self.set_state_and_leftovers(gpu, state, leftovers)

    def cells_of_bits(self, cells: int) -> list[WarmCell]:
        """Return cells by their bits."""
        found = []
        while cells:
            bit = cells & -cells
            found.append(self.cells[bit.bit_length() - 1])
            cells ^= bit
        return found

    def bucket_key(self, gpu: int) -> int:
        """Return the number of the bucket or cell that a GPU is in."""
        cell = self._cell_of[gpu]
        return self.state_of[gpu] if cell is None else self.cell_key(cell)

    def cell_key(self, cell: WarmCell) -> int:
        """Return the number of a cell, distinct from all bucket numbers."""
        return len(self.gpus_by_state) + cell.number

    def gpus_in_same_bucket(self, gpu: int) -> Sequence[int]:
        """Return all GPUs of the bucket or cell that a GPU is in."""
        cell = self._cell_of[gpu]
        return self.gpus_by_state[self.state_of[gpu]] if cell is None else cell.gpus

    def _mark_emptied(self, state: int, cell: WarmCell | None) -> None:
        """Record that a bucket or a cell became empty."""
        live = self.occupied_ranks if cell is None else self._warm_ranks
        if cell is not None:
            self._occupied_cells &= ~cell.bit
            if self._warm_counts[state]:
                return
        for profile, bits in enumerate(self.ranks.rank_bit):
            live[profile] &= ~bits[state]

    def _mark_filled(self, state: int, cell: WarmCell | None) -> None:
        """Record that a bucket or a cell has a GPU."""
        live = self.occupied_ranks if cell is None else self._warm_ranks
        if cell is not None:
            self._occupied_cells |= cell.bit
            if self._warm_counts[state]:
                return
        for profile, bits in enumerate(self.ranks.rank_bit):
            live[profile] |= bits[state]

    def _new_cell(self, state: int, leftovers: int) -> WarmCell:
        """Create the cell of a new combination, and record how each profile fits there."""
        ranks, bit = self.ranks, 1 << len(self.cells)
        ways = []
        for profile, bits in enumerate(ranks.rank_bit):
            way = NO_START
            if bits[state]:
                way = self.slots.quickest_start(profile, state, leftovers)
                level = ranks.first_equal_rank[profile][bits[state].bit_length() - 1]
                self._cells_by_effort[way[0]][profile][level] |= bit
            ways.append(way)
        cell = self._cells_by_content[state, leftovers] = WarmCell(state, len(self.cells), tuple(ways))
        self.cells.append(cell)
        self._cells_by_state[state].append(cell)
        return cell


def _ranks_by_level(levels: Sequence[int]) -> list[int]:
    """Return, by level, the bits of all its ranks."""
    equals = [0] * len(levels)
    for rank, level in enumerate(levels):
        equals[level] |= 1 << rank
    return equals
