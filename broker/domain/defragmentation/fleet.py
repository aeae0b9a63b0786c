"""GPUs with the slices on them, as relocations need to know them."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.domain.defragmentation.gpu_shapes import GpuShapes
from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.costs.bid_price_rule import best_fill
from broker.domain.placement.costs.state_tables import EMPTY


class LiveSlice(NamedTuple):
    """A live slice: allocation, profile, first unit, relocation cost (None: immovable)."""

    allocation: str
    profile: int
    start: int
    cost: int | None = None
    tenant: str = ""

    def at(self, start: int) -> "LiveSlice":
        """Return the same slice at another first unit."""
        return LiveSlice(self.allocation, self.profile, start, self.cost, self.tenant)


class SliceFleet:
    """Buckets that also record which slices are on each GPU."""

    def __init__(self, buckets: StateBuckets, worth: Sequence[float] | None = None) -> None:
        """Take GPUs that are all empty; existing slices are added by `hold`.

        `worth` is the price of each profile; without it every unit of memory is worth the same.
        """
        self.buckets, self.table, self.ranks = buckets, buckets.table, buckets.ranks
        self.slices: list[dict[int, LiveSlice]] = [{} for _ in buckets.node]  # by GPU, then by first unit
        self.gpu: dict[str, int] = {}  # by allocation
        self.start: dict[str, int] = {}
        self.shapes = GpuShapes(self.table, len(buckets.node))
        self.worth = list(worth or (profile.memory for profile in self.table.profiles))
        self.sellable = best_fill(self.table, self.worth)  # by state, of the best slices that still fit

    def copy(self) -> "SliceFleet":
        """Return an independent copy with the same GPUs and slices."""
        clone = object.__new__(SliceFleet)
        clone.table, clone.ranks = self.table, self.ranks
        clone.worth, clone.sellable = self.worth, self.sellable
        clone.buckets = StateBuckets(self.ranks, self.buckets.node, self.buckets.state)
        clone.slices = [dict(sorted(slices.items())) for slices in self.slices]
        clone.gpu, clone.start = dict(self.gpu), dict(self.start)
        clone.shapes = self.shapes.copy()
        return clone

    @property
    def in_use(self) -> int:
        """The number of GPUs with any slice."""
        return len(self.slices) - len(self.shapes.gpus.get(0, ()))

    def find_cheapest_slot(self, profile: int, *, opening: bool = True) -> tuple[int, int] | None:
        """Return GPU and first unit where a slice costs least, or None.

        Without `opening` no empty GPU is used.
        """
        buckets, ranks = self.buckets, self.ranks
        live = buckets.live[profile]
        if not opening:
            live &= ~ranks.rank_bit[profile][EMPTY]
        if not live:
            return None
        state = ranks.states_by_rank[profile][(live & -live).bit_length() - 1]
        gpu = buckets.empty.first() if state == EMPTY else buckets.gpus[state][-1]
        return gpu, ranks.best_option[profile][state].start

    def place(self, piece: LiveSlice, *, opening: bool = True) -> tuple[int, int] | None:
        """Place a slice where it costs least, ignoring its start; None if impossible."""
        slot = self.find_cheapest_slot(piece.profile, opening=opening)
        if slot:
            self.hold(slot[0], piece.at(slot[1]))
        return slot

    def hold(self, gpu: int, piece: LiveSlice) -> None:
        """Place a slice on a GPU at its start.

        Raises KeyError where that is taken or the allocation is placed already.
        """
        if piece.allocation in self.gpu:
            raise KeyError(f"allocation {piece.allocation} is already on GPU {self.gpu[piece.allocation]}")
        self.buckets.hold(gpu, piece.profile, piece.start)
        self.slices[gpu][piece.start] = piece
        self.gpu[piece.allocation], self.start[piece.allocation] = gpu, piece.start
        self.shapes.put(gpu, piece.profile, piece.start, relocatable=piece.cost is not None)

    def lift(self, allocation: str) -> LiveSlice:
        """Remove an allocation's slice from its GPU; raise KeyError if unknown."""
        gpu, start = self.gpu.pop(allocation), self.start.pop(allocation)
        piece = self.slices[gpu].pop(start)
        self.buckets.release(gpu, piece.profile, start)
        self.shapes.take(gpu, piece.profile, start, relocatable=piece.cost is not None)
        return piece
