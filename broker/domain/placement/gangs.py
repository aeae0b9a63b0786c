"""Where a lease goes: one seat, or the seats of a gang, on cards that the caller may use."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.placement.pool import CardView, PoolIndex, Seat
from broker.domain.profiles import Profile


def choose(cards: Iterable[CardView], profile: Profile, model: GpuModelSpec) -> Seat | None:
    """Return the free seat that costs the fleet least, or None when nothing fits.

    For callers that come with rows; whoever chooses often keeps a PoolIndex instead.
    """
    return PoolIndex(model, cards).choose(profile)


def how_many_fit(cards: Iterable[CardView], profile: Profile, model: GpuModelSpec) -> int:
    """Return exactly how many of a profile could be placed now, one after the other."""
    return PoolIndex(model, cards).how_many_fit(profile)


def choose_gang(
    cards: Iterable[CardView], profile: Profile, model: GpuModelSpec, *, count: int, same_node: bool
) -> tuple[Seat, ...] | None:
    """Return that many seats together, or None: a gang starts whole or not at all.

    On one node, the node is taken where fewest cards are opened, least is lost and fewest empty cards
    remain. All members have one profile; where its placements do not cross, as on every model we know, taking
    them one by one finds room whenever there is room.
    """
    if count < 1:
        raise ValueError(f"a gang has at least one member, not {count}")
    if not same_node:
        gang = _take(PoolIndex(model, cards), profile, count)
        return gang[1] if gang else None
    nodes: defaultdict[str, list[CardView]] = defaultdict(list)
    for card in cards:
        nodes[card.node].append(card)
    found = []
    for node, members in _one_of_each_make(nodes):
        if gang := _take(PoolIndex(model, members), profile, count):
            empty = sum(card.state.empty for card in members)
            found.append((gang[0], empty, node, gang[1]))
    return min(found, key=lambda each: each[:3])[3] if found else None


def _take(pool: PoolIndex, profile: Profile, count: int) -> tuple[tuple[int, int], tuple[Seat, ...]] | None:
    """Seat a gang in a pool; also say how many cards it opened and what it lost."""
    if pool.how_many_fit(profile) < count:
        return None
    opened, loss = 0, 0
    seats: list[Seat] = []
    while len(seats) < count:
        choice = pool.weigh(profile)
        if choice is None:  # its placements cross, and an unlucky one took the room of two
            return None
        pool.hold(choice.seat, profile)
        opened, loss = opened + choice.score.opens, loss + choice.score.loss
        seats.append(choice.seat)
    return (opened, loss), tuple(seats)


def _one_of_each_make(nodes: dict[str, list[CardView]]) -> list[tuple[str, list[CardView]]]:
    """Keep the first node of every combination of cards: its equals would cost the same."""
    makes: dict[frozenset[tuple[object, int]], str] = {}
    for node in sorted(nodes):
        make = frozenset(Counter((card.state, card.layout) for card in nodes[node]).items())
        makes.setdefault(make, node)
    return [(node, nodes[node]) for node in makes.values()]
