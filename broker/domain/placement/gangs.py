"""Where a lease goes: one seat, or the seats of a gang, on cards that the caller may use."""

from collections.abc import Iterable, Mapping

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.placement.pool import CardView, PoolIndex
from broker.domain.placement.same_node import on_one_node
from broker.domain.placement.seats import Seat
from broker.domain.placement.topology import Link, Topology
from broker.domain.profiles import Profile

UNKNOWN: Mapping[str, Topology] = {}  # the links of all nodes


def choose(cards: Iterable[CardView], profile: Profile, model: GpuModelSpec) -> Seat | None:
    """Return the free seat that costs the fleet least, or None when nothing fits.

    For callers that come with rows; whoever chooses often keeps a PoolIndex instead.
    """
    return PoolIndex(model, cards).choose(profile)


def how_many_fit(cards: Iterable[CardView], profile: Profile, model: GpuModelSpec) -> int:
    """Return exactly how many of a profile could be placed now, one after the other."""
    return PoolIndex(model, cards).how_many_fit(profile)


def choose_gang(
    cards: Iterable[CardView],
    profile: Profile,
    model: GpuModelSpec,
    *,
    count: int,
    same_node: bool,
    topologies: Mapping[str, Topology] | None = None,
    within: Link | None = None,
) -> tuple[Seat, ...] | None:
    """Return that many seats together, for callers that come with rows: see `gang_of`."""
    pool = PoolIndex(model, cards)
    if within is not None and same_node:
        _must_be_linked(profile, model, count, topologies or {}, within)
    return gang_of(pool, profile, count=count, same_node=same_node, topologies=topologies, within=within)


def gang_of(
    pool: PoolIndex,
    profile: Profile,
    *,
    count: int,
    same_node: bool,
    topologies: Mapping[str, Topology] | None = None,
    within: Link | None = None,
) -> tuple[Seat, ...] | None:
    """Return that many seats of a pool together, or None: a gang starts whole or not at all. Nothing is held.

    On one node, the node is taken where fewest cards are opened, least is lost and fewest empty cards remain;
    where its links are known, the cards there that are nearest to each other. `within` is the longest link
    that may lie between two of them: then only nodes whose links are known will do. Whoever asks again with the same
    mapping of topologies has told the pool by `linked_anew` which of them changed.
    """
    if count < 1:
        raise ValueError(f"a gang has at least one member, not {count}")
    if within is not None and not same_node:
        raise ValueError("links lie inside a node: ask for one node, or for no nearness")
    if not same_node:
        return _anywhere(pool, profile, count)
    if within is not None:
        _must_be_whole(profile, pool.model)
    return on_one_node(pool, profile, count, UNKNOWN if topologies is None else topologies, within)


def _anywhere(pool: PoolIndex, profile: Profile, count: int) -> tuple[Seat, ...] | None:
    """Hold the seats in the pool itself, one after the other, and leave it as it was."""
    if pool.how_many_fit(profile) < count:
        return None
    seats: list[Seat] = []
    with pool.trying() as hold:
        # Where its placements cross, an unlucky one takes the room of two, and the last finds none.
        while len(seats) < count and (seat := pool.choose(profile)):
            hold(seat, profile)
            seats.append(seat)
    return tuple(seats) if len(seats) == count else None


def _must_be_whole(profile: Profile, model: GpuModelSpec) -> None:
    if profile.memory != model.grid:
        raise ValueError(f"only whole cards have links to each other, a slice of {profile.name} has none")


def _must_be_linked(
    profile: Profile, model: GpuModelSpec, count: int, topologies: Mapping[str, Topology], within: Link
) -> None:
    _must_be_whole(profile, model)
    ways = (topology.together(topology.cards, count) for topology in topologies.values())
    if not any(way and way[0] <= within for way in ways):
        raise ValueError(f"no node has {count} cards that reach each other by {within.name} or nearer")
