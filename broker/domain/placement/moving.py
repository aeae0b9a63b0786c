"""Steps that take slices from card to card, and drafts of them that are kept whole or taken back whole."""

from dataclasses import dataclass, replace

from broker.domain.placement.fleet import Fleet, Slice


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
    table, buckets = fleet.table, fleet.buckets
    if table.states[buckets.state[step.to_card]] & table.bits(step.profile, step.to_start):
        raise KeyError(f"unit {step.to_start} of card {step.to_card} is taken; make a new plan")
    fleet.hold(step.to_card, fleet.lift(step.allocation)._replace(start=step.to_start))


class Draft:
    """Slices lifted and put down elsewhere on the fleet itself, with a log by which all of it is undone."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.lifted: dict[str, tuple[int, Slice]] = {}
        self._log: list[tuple[int, Slice, bool]] = []  # card, slice, whether it was put there

    def lift(self, allocation: str) -> Slice:
        card = self.fleet.card[allocation]
        piece = self.fleet.lift(allocation)
        self.lifted[allocation] = card, piece
        self._log.append((card, piece, False))
        return piece

    def put(self, piece: Slice, card: int) -> None:
        self.fleet.hold(card, piece)
        self._log.append((card, piece, True))

    def place(self, piece: Slice, *, opening: bool = False) -> bool:
        """Put a slice down where it costs least, or say that there is no room."""
        seat = self.fleet.seat(piece.profile, opening=opening)
        if seat is None:
            return False
        self.put(piece._replace(start=seat[1]), seat[0])
        return True

    def undo(self) -> None:
        """Leave the fleet as it was found."""
        for card, piece, was_put in reversed(self._log):
            if was_put:
                self.fleet.lift(piece.allocation)
            else:
                self.fleet.hold(card, piece)

    def moved(self) -> list[Step]:
        """Return one step for every slice that lies elsewhere now, in no order that could be taken."""
        steps = []
        for allocation, (card, piece) in self.lifted.items():
            to = self.fleet.card[allocation], self.fleet.start[allocation]
            if to != (card, piece.start):
                steps.append(Step(allocation, piece.profile, card, piece.start, *to, cost=piece.cost or 0))
        return steps
