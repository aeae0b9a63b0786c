"""A fleet on which a few slices are moved: to make room for what fits nowhere, or to empty a card again."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.placing.cards import WHOLE
from bench.placing.workloads import Request
from broker.domain.placement.buckets import Buckets
from broker.domain.placement.consolidating import consolidate
from broker.domain.placement.evacuating import evacuate
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.ranks import Ranks
from broker.domain.placement.repacking import make_room
from broker.domain.placement.tables import EMPTY


@dataclass(frozen=True)
class Freedom:
    """When slices are moved."""

    on_a_miss: bool  # for one that fits nowhere, and for a gang that fits on no node
    on_a_release: bool  # off a card on which little is left


class Moved:
    """Cards in buckets, what a rule ranks first is taken, and every slice may be moved."""

    def __init__(self, ranks: Ranks, nodes: Sequence[int], freedom: Freedom) -> None:
        self.fleet, self.freedom, self.moves = Fleet(Buckets(ranks, nodes)), freedom, 0
        self.held: dict[int, tuple[str, ...]] = {}

    def place(self, number: int, request: Request) -> bool:
        if request.count > 1:
            return self._place_gang(number, request.count)
        piece = Slice(str(number), request.profile, 0, cost=1)
        if not self.freedom.on_a_miss:
            if not self.fleet.place(piece):
                return False
        elif made := make_room(self.fleet, piece):
            self.moves += len(made.steps)
        else:
            return False
        self.held[number] = (piece.allocation,)
        return True

    def _place_gang(self, number: int, count: int) -> bool:
        # A gang stays where it is: a member moved alone would leave its node.
        gang = [Slice(f"{number}.{member}", WHOLE, 0) for member in range(count)]
        empty = self.fleet.buckets.empty
        node = empty.node_with(count)
        if node is not None:
            for member, card in zip(gang, empty.on[node][-count:], strict=True):
                self.fleet.hold(card, member)
        elif self.freedom.on_a_miss and (made := evacuate(self.fleet, gang)):
            self.moves += len(made.steps)
        else:
            return False
        self.held[number] = tuple(member.allocation for member in gang)
        return True

    def release(self, number: int) -> None:
        for allocation in self.held.pop(number):
            card = self.fleet.card[allocation]
            self.fleet.lift(allocation)
            if self.freedom.on_a_release:
                self.moves += len(consolidate(self.fleet, card))

    def active(self) -> int:
        return len(self.fleet.on) - len(self.fleet.buckets.cards[EMPTY])
