"""Single relocations, and drafts of several that are kept or undone together."""

from dataclasses import dataclass, replace

from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.placement.costs.state_tables import NOWHERE


@dataclass(frozen=True, slots=True)
class SliceRelocation:
    """Relocation of one slice, with its cost and gain."""

    allocation: str
    profile: int
    gpu: int
    start: int
    to_gpu: int
    to_start: int
    cost: int
    gain: int = 0

    @property
    def inverse(self) -> "SliceRelocation":
        """The relocation that undoes this one; the gain is lost, the cost is paid again."""
        return replace(
            self, gpu=self.to_gpu, start=self.to_start, to_gpu=self.gpu, to_start=self.start, gain=-self.gain
        )


def apply_relocation(fleet: SliceFleet, step: SliceRelocation) -> None:
    """Make a relocation; raise KeyError, changing nothing, if it is outdated.

    It is when the slice is not there or its new placement is taken.
    """
    if (fleet.gpu.get(step.allocation), fleet.start.get(step.allocation)) != (step.gpu, step.start):
        raise KeyError(f"{step.allocation} is not at unit {step.start} of GPU {step.gpu}; create a new plan")
    if fleet.table.state_with[step.profile][step.to_start][fleet.buckets.state[step.to_gpu]] == NOWHERE:
        raise KeyError(f"unit {step.to_start} of GPU {step.to_gpu} is in use; create a new plan")
    fleet.hold(step.to_gpu, fleet.lift(step.allocation).at(step.to_start))


class RelocationDraft:
    """Relocations tried on the fleet itself, with a log to undo them."""

    def __init__(self, fleet: SliceFleet) -> None:
        self.fleet = fleet
        self._log: list[tuple[int, LiveSlice, bool]] = []  # GPU, slice, whether it was placed (else removed)
        self._lost_value = 0.0

    @property
    def mark(self) -> int:
        """The position of the log, for undoing what comes after."""
        return len(self._log)

    @property
    def lost_value(self) -> float:
        """The decrease of what could still be sold on these GPUs."""
        return round(self._lost_value, 6)

    def lift(self, allocation: str) -> LiveSlice:
        gpu = self.fleet.gpu[allocation]
        self._log.append((gpu, self._lift(allocation, gpu), False))
        return self._log[-1][1]

    def put(self, piece: LiveSlice, gpu: int) -> None:
        self._hold(piece, gpu)
        self._log.append((gpu, piece, True))

    def place(self, piece: LiveSlice, *, opening: bool = False) -> bool:
        """Place a slice where it costs least; False if there is no room."""
        slot = self.fleet.find_cheapest_slot(piece.profile, opening=opening)
        if slot is None:
            return False
        self.put(piece.at(slot[1]), slot[0])
        return True

    def undo(self, mark: int = 0) -> None:
        """Restore the fleet as it was at a position of the log.

        By default that is the beginning.
        """
        while len(self._log) > mark:
            gpu, piece, was_placed = self._log.pop()
            if was_placed:
                self._lift(piece.allocation, gpu)
            else:
                self._hold(piece, gpu)

    def placed_since(self, since: int = 0) -> list[tuple[int, LiveSlice]]:
        """Return the placed slices with their GPUs, in order."""
        return [(gpu, piece) for gpu, piece, was_placed in self._log[since:] if was_placed]

    def relocations(self) -> list[SliceRelocation]:
        """Return one relocation for each slice that lies elsewhere now, unordered.

        `order_relocations` finds the order in which they can be made.
        """
        origins: dict[str, tuple[int, LiveSlice] | None] = {}
        for gpu, piece, was_placed in self._log:
            origins.setdefault(piece.allocation, None if was_placed else (gpu, piece))
        steps, fleet = [], self.fleet
        for allocation, origin in origins.items():
            if origin is None:  # a new slice, not a relocated one
                continue
            gpu, piece = origin
            to = fleet.gpu[allocation], fleet.start[allocation]
            if to != (gpu, piece.start):
                steps.append(SliceRelocation(allocation, piece.profile, gpu, piece.start, *to, cost=piece.cost or 0))
        return steps

    def _lift(self, allocation: str, gpu: int) -> LiveSlice:
        value, state = self.fleet.sellable, self.fleet.buckets.state
        self._lost_value += value[state[gpu]]
        piece = self.fleet.lift(allocation)
        self._lost_value -= value[state[gpu]]
        return piece

    def _hold(self, piece: LiveSlice, gpu: int) -> None:
        value, state = self.fleet.sellable, self.fleet.buckets.state
        self._lost_value += value[state[gpu]]
        self.fleet.hold(gpu, piece)
        self._lost_value -= value[state[gpu]]
