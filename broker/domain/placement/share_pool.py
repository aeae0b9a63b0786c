"""The cards of one pool that are sold in shares: the shared-card rule over cards with ids, units and layouts.

A share lies nowhere on its card in truth, but the books give it units, so that none is sold twice. The rule says on
which node, and how full a card; among cards that are equally full there, the units decide.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from zlib import crc32

from broker.domain.geometry import CardState
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.placement.kinds import Kind, kind_of
from broker.domain.placement.pool import CardView, PoolIndex
from broker.domain.placement.rooms import WHOLE, Request, Room
from broker.domain.placement.seats import Seat
from broker.domain.placement.shared import Bid, SharedNodes
from broker.domain.placement.stranding import LeastStranded, Weights
from broker.domain.profiles import Placement, Profile
from broker.domain.published import Cut
from broker.domain.states import Isolation

# The order of nodes decides between equals only: far down a long one, an old hole is still better than an empty card.
WEIGHTS = Weights(order=50.0)


class SharedRoom(Room):
    """The cards of one node that have one layout, by what is left of each for shares that are in each other's way."""

    __slots__ = ("gpus", "kind", "sold", "uncut")

    def __init__(self, name: str, kind: Kind, shares: Iterable[Profile], *, uncut: bool) -> None:
        """Have no card yet; rooms are filled in the order of a sum of their names, so that all makes are mixed."""
        super().__init__(cpu=0, memory=0, cards=0, rank=crc32(name.encode()) / 2**32)
        self.kind, self.uncut = kind, uncut
        self.gpus: list[str] = []  # as `left` is
        self.sold = {
            _request(each, kind.table.grid): kind.number[each.name, each.isolation] for each in shares
        }

    def put(self, gpu: str, card: CardState) -> None:
        """Have a card as it is now."""
        if gpu not in self.gpus:
            self.gpus.append(gpu)
            self.left.append(0)
        self._leave(self.gpus.index(gpu), self._left(self.kind.state(card)))

    def drop(self, gpu: str) -> None:
        """Take a card out."""
        at = self.gpus.index(gpu)
        self._leave(at, 0)
        del self.gpus[at], self.left[at]

    def like(self, card: int) -> list[str]:
        """Name the cards of which as much is left as of this one."""
        return [gpu for gpu, left in zip(self.gpus, self.left, strict=True) if left == self.left[card]]

    def _leave(self, at: int, left: int) -> None:
        self.free += left - self.left[at]
        self.whole += (left == WHOLE) - (self.left[at] == WHOLE)
        self.left[at] = left

    def _left(self, state: int) -> int:
        """Return what can be sold of a card in a state, no more than what every share up to it finds room in."""
        free = {
            asked.share: self.kind.most[number][state] * asked.share for asked, number in self.sold.items()
        }
        most = max(free.values())
        largest = max((share for share, fits in free.items() if fits), default=0)
        scattered = any(largest < share <= most for share in free)
        return largest if scattered else most


class OwnRules:
    """Every room bids by its own rule: where the cut stands already, nobody loses a whole card."""

    def bid(self, room: Room, request: Request) -> Bid | None:
        if not isinstance(room, SharedRoom) or request not in room.sold:
            return None
        return _rule(tuple(room.sold), room.uncut).bid(room, request)


class SharePool:
    """The cards of one GpuModel that are sold in shares of one isolation; it is asked as a PoolIndex is.

    What it chooses depends on the cards alone, never on their order or on what was held before.
    """

    def __init__(self, model: GpuModelSpec, isolation: Isolation, cards: Iterable[CardView] = ()) -> None:
        self.model, self._isolation = model, isolation
        self._asked = {share: n for n, share in enumerate(model.sold_as(isolation))}
        self._fits = PoolIndex(model)
        self._nodes = SharedNodes([], [_request(share, model.grid) for share in self._asked], OwnRules())
        self._rooms: list[SharedRoom] = []
        self._at: dict[tuple[str, Cut], list[int]] = {}  # the rooms of a node's cards
        for card in cards:
            self.add(card)

    def add(self, card: CardView) -> None:
        """Take a card in, or raise ValueError when it is in the pool already."""
        self._fits.add(card)
        self._look(card)

    def linked_anew(self, node: str) -> None:
        """Shares have no links."""

    def remove(self, gpu: str) -> CardView:
        """Take a card out and return it as it is now."""
        card = self._fits.remove(gpu)
        for at in self._at[card.node, card.layout]:
            self._rooms[at].drop(gpu)
            self._nodes.touch(at)
        return card

    def card(self, gpu: str) -> CardView:
        return self._fits.card(gpu)

    def hold(self, seat: Seat, profile: Profile) -> None:
        """Take a seat, or raise ValueError when it is not free."""
        self._fits.hold(seat, profile)
        self._look(self._fits.card(seat.gpu))

    def release(self, seat: Seat, profile: Profile) -> None:
        """Give a seat back, or raise ValueError when it was not held."""
        self._fits.release(seat, profile)
        self._look(self._fits.card(seat.gpu))

    def choose(self, profile: Profile) -> Seat | None:
        """Return the free seat that costs the fleet least, or None when there is none."""
        if profile not in self._asked:
            raise ValueError(f"{self.model.name} shared as {self._isolation} is not sold as {profile.name!r}")
        held = self._nodes.best(self._asked[profile])
        if held is None:
            return None
        room = self._rooms[held.node]
        kind, number = room.kind, room.sold[_request(profile, self.model.grid)]
        states = {gpu: kind.state(self._fits.card(gpu).state) for gpu in room.like(held.cards[0])}
        gpu = min(states, key=lambda each: (kind.cost[number][states[each]], each))
        return Seat(gpu, Placement(kind.ranks.best[number][states[gpu]].start, profile.memory))

    def how_many_fit(self, profile: Profile) -> int:
        """Return exactly how many of a profile could be placed now, one after the other."""
        return self._fits.how_many_fit(profile)

    def _look(self, card: CardView) -> None:
        """Let the rooms of a card know how it is now."""
        key = card.node, card.layout
        if key not in self._at:
            self._at[key] = [self._join(room) for room in self._rooms_of(*key)]
        for at in self._at[key]:
            self._rooms[at].put(card.gpu, card.state)
            self._nodes.touch(at)

    def _join(self, room: SharedRoom) -> int:
        self._rooms.append(room)
        return self._nodes.join(room)

    def _rooms_of(self, node: str, layout: Cut) -> Iterator[SharedRoom]:
        """Yield the rooms of a node's cards: the places of a cut are each for one share and in no other's way."""
        kind = kind_of(self.model, layout)
        shares = [each for each in kind.table.profiles if each.isolation is self._isolation]
        if layout is None:
            yield SharedRoom(node, kind, shares, uncut=True)
            return
        for share in shares:
            yield SharedRoom(f"{node} {layout} {share.name}", kind, [share], uncut=False)


def _request(share: Profile, grid: int) -> Request:
    """Return a share as the rule knows it: of a machine it takes its part of a card, so that limits nothing."""
    return Request(cpu=0, memory=0, cards=1, share=share.memory * WHOLE // grid)


@lru_cache(maxsize=256)
def _rule(sold: tuple[Request, ...], uncut: bool) -> LeastStranded:
    """Return the rule for cards that are sold in these shares, and whole as well while they are not cut.

    Nothing is known of what will be asked for, so each is taken to be asked for as often.
    """
    asked = dict.fromkeys(sold, 1.0)
    if uncut:
        asked[Request(cpu=0, memory=0, cards=1, share=WHOLE)] = 1.0
    return LeastStranded(asked, WEIGHTS)
