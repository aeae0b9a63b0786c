"""Single relocations, and drafts of several that are kept or undone together."""

from dataclasses import dataclass, replace

from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.placement.costs.state_tables import NO_STATE


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
    if (fleet.gpu_of.get(step.allocation), fleet.start_of.get(step.allocation)) != (step.gpu, step.start):
        raise KeyError(f"{step.allocation} is not at unit {step.start} of GPU {step.gpu}; create a new plan")
    if fleet.table.state_with[step.profile][step.to_start][fleet.buckets.state_of[step.to_gpu]] == NO_STATE:
        raise KeyError(f"unit {step.to_start} of GPU {step.to_gpu} is in use; create a new plan")
    fleet.place_on(step.to_gpu, fleet.remove(step.allocation).with_start(step.to_start))


class RelocationDraft:
    """Relocations tried on the fleet itself, with a log to undo them."""

    def __init__(self, fleet: SliceFleet) -> None:
        self.fleet = fleet
        self._log: list[tuple[int, LiveSlice, bool]] = []  # GPU, slice, whether it was placed (else removed)
        self._lost_value = 0.0

    @property
    def log_position(self) -> int:
        """The current end of the log, for undoing what comes after."""
        return len(self._log)

    @property
    def lost_value(self) -> float:
        """The decrease of what could still be sold on these GPUs."""
        return round(self._lost_value, 6)

    def remove(self, allocation: str) -> LiveSlice:
        """Remove an allocation's slice from its GPU and return it."""
        gpu = self.fleet.gpu_of[allocation]
        self._log.append((gpu, self._remove(allocation, gpu), False))
        return self._log[-1][1]

    def place_on(self, piece: LiveSlice, gpu: int) -> None:
        """Place a slice on a GPU at its start."""
        self._place(piece, gpu)
        self._log.append((gpu, piece, True))

    def place_cheapest(self, piece: LiveSlice, *, use_empty_gpus: bool = False) -> bool:
        """Place a slice where it costs least; False if there is no room."""
        slot = self.fleet.find_cheapest_slot(piece.profile, use_empty_gpus=use_empty_gpus)
        if slot is None:
            return False
        self.place_on(piece.with_start(slot[1]), slot[0])
        return True

    def undo(self, log_position: int = 0) -> None:
        """Restore the fleet as it was at a position of the log.

        By default that is the beginning.
        """
        while len(self._log) > log_position:
            gpu, piece, was_placed = self._log.pop()
            if was_placed:
                self._remove(piece.allocation, gpu)
            else:
                self._place(piece, gpu)

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
            to = fleet.gpu_of[allocation], fleet.start_of[allocation]
            if to != (gpu, piece.start):
                steps.append(SliceRelocation(allocation, piece.profile, gpu, piece.start, *to, cost=piece.cost or 0))
        return steps

    def _remove(self, allocation: str, gpu: int) -> LiveSlice:
        value, state = self.fleet.remaining_value, self.fleet.buckets.state_of
        self._lost_value += value[state[gpu]]
        piece = self.fleet.remove(allocation)
        self._lost_value -= value[state[gpu]]
        return piece

    def _place(self, piece: LiveSlice, gpu: int) -> None:
        value, state = self.fleet.remaining_value, self.fleet.buckets.state_of
        self._lost_value += value[state[gpu]]
        self.fleet.place_on(gpu, piece)
        self._lost_value -= value[state[gpu]]
