"""Steps that take slices from card to card, and drafts of them that are kept whole or taken back whole."""

from dataclasses import dataclass, replace

from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.tables import NOWHERE


@dataclass(frozen=True, slots=True)
class Step:
    """One slice from one place to another, with what the move costs and what it gains."""

    allocation: str
    profile: int
    card: int
    start: int
    to_card: int
    to_start: int
    cost: int
    gain: int = 0

    @property
    def inverse(self) -> "Step":
        """The step that takes this one back: what it gained is lost again, and moving costs what it costs."""
        return replace(
            self,
            card=self.to_card,
            start=self.to_start,
            to_card=self.card,
            to_start=self.start,
            gain=-self.gain,
        )


def take(fleet: Fleet, step: Step) -> None:
    """Take a step; raises KeyError, and changes nothing, where the slice is not there or its new place is taken."""
    if (fleet.card.get(step.allocation), fleet.start.get(step.allocation)) != (step.card, step.start):
        raise KeyError(f"{step.allocation} is not at unit {step.start} of card {step.card}; make a new plan")
    if fleet.table.put[step.profile][step.to_start][fleet.buckets.state[step.to_card]] == NOWHERE:
        raise KeyError(f"unit {step.to_start} of card {step.to_card} is taken; make a new plan")
    fleet.hold(step.to_card, fleet.lift(step.allocation).at(step.to_start))


class Draft:
    """Slices lifted and put down elsewhere on the fleet itself, with a log by which all of it is undone."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._log: list[tuple[int, Slice, bool]] = []  # card, slice, whether it was put there
        self._lost = 0.0

    @property
    def mark(self) -> int:
        """Where the log stands, for undoing what comes after."""
        return len(self._log)

    @property
    def loss(self) -> float:
        """The best that could have been sold on these cards before, less the best that could be now."""
        return round(self._lost, 6)

    def lift(self, allocation: str) -> Slice:
        card = self.fleet.card[allocation]
        self._log.append((card, self._lift(allocation, card), False))
        return self._log[-1][1]

    def put(self, piece: Slice, card: int) -> None:
        self._hold(piece, card)
        self._log.append((card, piece, True))

    def place(self, piece: Slice, *, opening: bool = False) -> bool:
        """Put a slice down where it costs least, or say that there is no room."""
        seat = self.fleet.seat(piece.profile, opening=opening)
        if seat is None:
            return False
        self.put(piece.at(seat[1]), seat[0])
        return True

    def undo(self, mark: int = 0) -> None:
        """Leave the fleet as it was when the log stood at the mark; at first, as it was found."""
        while len(self._log) > mark:
            card, piece, was_put = self._log.pop()
            if was_put:
                self._lift(piece.allocation, card)
            else:
                self._hold(piece, card)

    def put_down(self, since: int = 0) -> list[tuple[int, Slice]]:
        """Return what was put down and on which card, in the order in which that was done."""
        return [(card, piece) for card, piece, was_put in self._log[since:] if was_put]

    def moved(self) -> list[Step]:
        """Return one step for every slice that lies elsewhere now, in no order that could be taken."""
        origins: dict[str, tuple[int, Slice] | None] = {}
        for card, piece, was_put in self._log:
            origins.setdefault(piece.allocation, None if was_put else (card, piece))
        steps, fleet = [], self.fleet
        for allocation, origin in origins.items():
            if origin is None:  # new here
                continue
            card, piece = origin
            to = fleet.card[allocation], fleet.start[allocation]
            if to != (card, piece.start):
                steps.append(Step(allocation, piece.profile, card, piece.start, *to, cost=piece.cost or 0))
        return steps

    def _lift(self, allocation: str, card: int) -> Slice:
        room, state = self.fleet.room, self.fleet.buckets.state
        self._lost += room[state[card]]
        piece = self.fleet.lift(allocation)
        self._lost -= room[state[card]]
        return piece

    def _hold(self, piece: Slice, card: int) -> None:
        room, state = self.fleet.room, self.fleet.buckets.state
        self._lost += room[state[card]]
        self.fleet.hold(card, piece)
        self._lost -= room[state[card]]
