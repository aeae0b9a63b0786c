"""GPUs with the slices on them, as relocations need to know them."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.domain.defragmentation.gpu_shapes import GpuShapes
from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.costs.bid_price_rule import max_remaining_value
from broker.domain.placement.costs.state_tables import EMPTY


class LiveSlice(NamedTuple):
    """A live slice: allocation, profile, first unit, relocation cost (None: immovable)."""

    allocation: str
    profile: int
    start: int
    cost: int | None = None
    tenant: str = ""

    def with_start(self, start: int) -> "LiveSlice":
        """Return the same slice at another first unit."""
        return LiveSlice(self.allocation, self.profile, start, self.cost, self.tenant)


class SliceFleet:
    """Buckets that also record which slices are on each GPU."""

    def __init__(self, buckets: StateBuckets, prices: Sequence[float] | None = None) -> None:
        """Take GPUs that are all empty; existing slices are added by `place_on`.

        `prices` has one price per profile; without it every unit of memory has the same value.
        """
        self.buckets, self.table, self.ranks = buckets, buckets.table, buckets.ranks
        self.slices: list[dict[int, LiveSlice]] = [{} for _ in buckets.node_of]  # by GPU, then by first unit
        self.gpu_of: dict[str, int] = {}  # by allocation
        self.start_of: dict[str, int] = {}  # by allocation
        self.shapes = GpuShapes(self.table, len(buckets.node_of))
        self.prices = list(prices or (profile.memory for profile in self.table.profiles))
        # By state, the value of the best slices that still fit.
        self.remaining_value = max_remaining_value(self.table, self.prices)

    def copy(self) -> "SliceFleet":
        """Return an independent copy with the same GPUs and slices."""
        clone = object.__new__(SliceFleet)
        clone.table, clone.ranks = self.table, self.ranks
        clone.prices, clone.remaining_value = self.prices, self.remaining_value
        clone.buckets = StateBuckets(self.ranks, self.buckets.node_of, self.buckets.state_of)
        clone.slices = [dict(sorted(slices.items())) for slices in self.slices]
        clone.gpu_of, clone.start_of = dict(self.gpu_of), dict(self.start_of)
        clone.shapes = self.shapes.copy()
        return clone

    @property
    def gpus_in_use(self) -> int:
        """The number of GPUs with any slice."""
        return len(self.slices) - len(self.shapes.gpus.get(0, ()))

    def find_cheapest_slot(self, profile: int, *, use_empty_gpus: bool = True) -> tuple[int, int] | None:
        """Return GPU and first unit where a slice costs least, or None.

        Without `use_empty_gpus` no empty GPU is used.
        """
        buckets, ranks = self.buckets, self.ranks
        live = buckets.occupied_ranks[profile]
        if not use_empty_gpus:
            live &= ~ranks.rank_bit[profile][EMPTY]
        if not live:
            return None
        state = ranks.states_by_rank[profile][(live & -live).bit_length() - 1]
        gpu = buckets.empty.gpu_on_lowest_count_node() if state == EMPTY else buckets.gpus_by_state[state][-1]
        return gpu, ranks.best_option[profile][state].start

    def place_cheapest(self, piece: LiveSlice, *, use_empty_gpus: bool = True) -> tuple[int, int] | None:
        """Place a slice where it costs least, ignoring its start; None if impossible."""
        slot = self.find_cheapest_slot(piece.profile, use_empty_gpus=use_empty_gpus)
        if slot:
            self.place_on(slot[0], piece.with_start(slot[1]))
        return slot

    def place_on(self, gpu: int, piece: LiveSlice) -> None:
        """Place a slice on a GPU at its start.

        Raises KeyError where that is taken or the allocation is placed already.
        """
        if piece.allocation in self.gpu_of:
            raise KeyError(f"allocation {piece.allocation} is already on GPU {self.gpu_of[piece.allocation]}")
        self.buckets.place_at(gpu, piece.profile, piece.start)
        self.slices[gpu][piece.start] = piece
        self.gpu_of[piece.allocation], self.start_of[piece.allocation] = gpu, piece.start
        self.shapes.add_slice(gpu, piece.profile, piece.start, relocatable=piece.cost is not None)

    def remove(self, allocation: str) -> LiveSlice:
        """Remove an allocation's slice from its GPU; raise KeyError if unknown."""
        gpu, start = self.gpu_of.pop(allocation), self.start_of.pop(allocation)
        piece = self.slices[gpu].pop(start)
        self.buckets.release(gpu, piece.profile, start)
        self.shapes.remove_slice(gpu, piece.profile, start, relocatable=piece.cost is not None)
        return piece
