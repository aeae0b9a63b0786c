"""The rule as the product sells by it: told of no demand, its cards known by their ids, the first of equals taken."""

from collections import Counter
from collections.abc import Sequence

from bench.placing.cards import MODEL, PROFILES, WHOLE
from bench.placing.workloads import Request
from broker.domain.geometry import EMPTY
from broker.domain.placement.gangs import gang_of
from broker.domain.placement.pool import CardView, PoolIndex
from broker.domain.placement.seats import Seat
from broker.domain.placement.warmth import COLD
from broker.domain.profiles import Profile

SOLD = "as sold"


class Sold:
    """A pool of the product's own, with what is left cut on its cards; whole cards are sold whole."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.moves = 0
        cards = (CardView(f"{card:06}", f"{node:06}", EMPTY, None, COLD) for card, node in enumerate(nodes))
        self.pool = PoolIndex(MODEL, cards)
        self.held: dict[int, tuple[Profile, Sequence[Seat]]] = {}
        self.on = Counter[str]()

    def place(self, number: int, request: Request) -> bool:
        profile = MODEL.whole if request.profile == WHOLE else PROFILES[request.profile]
        if request.count > 1:
            seats = gang_of(self.pool, profile, count=request.count, same_node=True)
        else:
            seat = self.pool.choose(profile)
            seats = (seat,) if seat else None
        if seats is None:
            return False
        for each in seats:
            self.pool.hold(each, profile)
        self.on.update(each.gpu for each in seats)
        self.held[number] = profile, seats
        return True

    def release(self, number: int) -> None:
        profile, seats = self.held.pop(number)
        for seat in seats:
            self.pool.release(seat, profile)
            self.on[seat.gpu] -= 1
            if not self.on[seat.gpu]:
                del self.on[seat.gpu]

    def active(self) -> int:
        return len(self.on)
