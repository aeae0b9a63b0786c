import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.placement.cutting import most_worth, share_prices
from broker.domain.placement.fragments import Fragments
from broker.domain.placement.rooms import WHOLE, Held, Request, Room
from broker.domain.placement.shared import Bid, SharedNodes
from broker.domain.placement.stranding import LeastStranded, Weights, evenly

KINDS = (
    Request(2, 8, 1, 470),
    Request(3, 8, 1, 810),
    Request(2, 4, 1, 190),
    Request(4, 8, 1, WHOLE),
    Request(8, 16, 2, WHOLE),
    Request(6, 8, 0, 0),
)
POPULAR = dict(zip(KINDS, (5, 4, 1, 6, 1, 2), strict=True))
NODES = ((8, 32, 2), (16, 64, 2), (24, 40, 4))  # processors, memory, cards


def rooms(count: int = 6) -> list[Room]:
    makes = [NODES[node % len(NODES)] for node in range(count)]
    rank = evenly(dict(enumerate(makes)))
    return [
        Room(cpu=cpu, memory=memory, cards=cards, rank=rank[node])
        for node, (cpu, memory, cards) in enumerate(makes)
    ]


def fleet(count: int = 6, weights: Weights | None = None) -> SharedNodes:
    return SharedNodes(rooms(count), KINDS, LeastStranded(POPULAR, weights))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, len(KINDS) - 1), st.integers(0, 99)), max_size=60)
)
def test_every_request_goes_where_the_cheapest_bid_of_all_nodes_is(steps: list[tuple[int, int, int]]) -> None:
    nodes, rule = fleet(), LeastStranded(POPULAR)
    held: list[tuple[int, Held]] = []
    for leaves, kind, pick in steps:
        if not leaves and held:
            nodes.release(*held.pop(pick % len(held)))
            continue
        bids = [bid.cost for room in nodes.rooms if (bid := rule.bid(room, KINDS[kind]))]
        before = [rule.bid(room, KINDS[kind]) for room in nodes.rooms]
        got = nodes.place(kind)
        assert (got is None) == (not bids)
        if got:
            assert before[got.node] == Bid(min(bids), got.cards)
            held.append((kind, got))
    for kind, got in held:
        nodes.release(kind, got)
    fresh = rooms()
    assert [(r.cpu, r.memory, r.left, r.free, r.whole) for r in nodes.rooms] == [
        (r.cpu, r.memory, r.left, r.free, r.whole) for r in fresh
    ]


def cost_as_defined(room: Room, request: Request, cards: tuple[int, ...], weights: Weights) -> float:
    """What a way of holding a request costs, by taking it and looking."""
    fragments = Fragments(POPULAR)
    takes = sum(r.takes * n for r, n in POPULAR.items())
    a_cpu = takes / sum(r.cpu * n for r, n in POPULAR.items())
    a_mib = takes / sum(r.memory * n for r, n in POPULAR.items())

    def stranded() -> float:
        return max(0.0, room.free - min((room.cpu + 1) * a_cpu, (room.memory + 1) * a_mib))

    before, stood = fragments.of(room), stranded()
    room.take(request, cards)
    after, stands = fragments.of(room), stranded()
    room.give(request, cards)
    cost = weights.order * room.rank + after - before + weights.stranded * (stands - stood)
    if request.partial:
        parts = {r.share: n for r, n in POPULAR.items() if r.partial}
        worth = most_worth({**share_prices(parts), WHOLE: 1.0})
        left = room.left[cards[0]]
        cost += weights.cut * WHOLE * (worth[left] - worth[left - request.share])
    return cost


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0, 190, 530, 999, WHOLE]), min_size=1, max_size=4),
    st.integers(0, 30),
    st.sampled_from(KINDS),
)
def test_a_bid_is_the_least_that_any_card_of_the_node_costs(
    left: list[int], cpu: int, request: Request
) -> None:
    weights = Weights()
    room = Room(cpu=cpu, memory=64, cards=len(left), rank=0.25)
    for card, rest in enumerate(left):
        if rest < WHOLE:
            room.take(Request(0, 0, 1, WHOLE - rest), (card,))
    bid = LeastStranded(POPULAR, weights).bid(room, request)
    if not room.fits(request):
        assert bid is None
        return
    ways = [room.wholes(request.cards)]
    if request.partial:
        ways = [(card,) for card, rest in enumerate(left) if rest >= request.share]
    costs = [cost_as_defined(room, request, cards, weights) for cards in ways]
    assert bid is not None
    assert bid.cost == pytest.approx(min(costs))
    assert cost_as_defined(room, request, bid.cards, weights) == pytest.approx(min(costs))


def test_a_request_that_fits_nowhere_is_refused_until_somebody_leaves() -> None:
    nodes = fleet(1)
    first, second = nodes.place(3), nodes.place(3)
    assert first
    assert second
    assert nodes.place(0) is None
    nodes.release(3, first)
    assert nodes.place(0) == Held(0, first.cards)


def test_a_place_of_the_callers_choosing_is_held_and_a_taken_one_refused() -> None:
    nodes = fleet(2)
    nodes.take(3, Held(1, (0,)))
    with pytest.raises(ValueError, match="does not fit on cards"):
        nodes.take(0, Held(1, (0,)))
    with pytest.raises(ValueError, match="is not held"):
        nodes.release(0, Held(1, (1,)))
    assert nodes.rooms[1].left == [0, WHOLE]


def test_bids_of_the_past_are_forgotten_however_often_nodes_change() -> None:
    nodes = fleet(2)
    for _ in range(100):
        nodes.take(3, Held(1, (0,)))
        nodes.release(3, Held(1, (0,)))
        got = nodes.place(0)
        assert got
        assert got.node == 0
        nodes.release(0, got)
    assert len(nodes._bids[0]) <= 4 * 2 + 64


def test_processors_are_kept_for_cards_that_still_need_them() -> None:
    # Both nodes have two cards free; on the first there are just enough processors for them, on the second plenty.
    lean, rich = (Room(cpu=cpu, memory=64, cards=2) for cpu in (8, 20))
    nodes = SharedNodes([lean, rich], KINDS, LeastStranded(POPULAR))
    assert nodes.place(5) == Held(1, ())


def test_equal_nodes_are_filled_in_one_order_and_all_makes_evenly() -> None:
    ranks = evenly(dict(enumerate(["a", "b", "a", "a", "a", "b"])))
    assert ranks == {0: 0.125, 2: 0.375, 3: 0.625, 4: 0.875, 1: 0.25, 5: 0.75}
    nodes = SharedNodes(
        [Room(cpu=8, memory=32, cards=2, rank=rank) for rank in (0.75, 0.25)], KINDS, LeastStranded(POPULAR)
    )
    assert [nodes.place(0), nodes.place(0)] == [Held(1, (0,)), Held(1, (0,))]


def test_demand_without_processors_strands_no_card() -> None:
    rule = LeastStranded({Request(0, 0, 1, 500): 1.0}, Weights(cut=0.0))
    bid = rule.bid(Room(cpu=0, memory=0, cards=1), Request(0, 0, 1, 500))
    assert bid == Bid(0.0, (0,))


def test_a_part_goes_on_the_card_that_it_fills() -> None:
    room = Room(cpu=20, memory=64, cards=3)
    room.take(Request(0, 0, 1, 530), (1,))
    room.take(Request(0, 0, 1, 1), (2,))
    bid = LeastStranded(POPULAR).bid(room, KINDS[0])
    assert bid
    assert bid.cards == (1,)
