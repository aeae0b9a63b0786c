"""Placement of shares on nodes by the cheapest bid."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.shared_placement.trace import fill_order_by_class
from broker.domain.placement.shares.cutting_stock import best_value_by_free, share_prices
from broker.domain.placement.shares.fragmentation import FragmentationMeasure
from broker.domain.placement.shares.least_stranded import LeastStranded, StrandingWeights
from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, HeldShare, NodeCapacity, ShareRequest
from broker.domain.placement.shares.shared_nodes import ShareBid, SharedNodes

KINDS = (
    ShareRequest(2, 8, 1, 470),
    ShareRequest(3, 8, 1, 810),
    ShareRequest(2, 4, 1, 190),
    ShareRequest(4, 8, 1, WHOLE_MILLI),
    ShareRequest(8, 16, 2, WHOLE_MILLI),
    ShareRequest(6, 8, 0, 0),
)
POPULAR = dict(zip(KINDS, (5, 4, 1, 6, 1, 2), strict=True))
NODES = ((8, 32, 2), (16, 64, 2), (24, 40, 4))  # processors, memory, GPUs


def capacities(count: int = 6) -> list[NodeCapacity]:
    makes = [NODES[node % len(NODES)] for node in range(count)]
    rank = fill_order_by_class(dict(enumerate(makes)))
    return [
        NodeCapacity(cpu=cpu, memory=memory, gpus=gpus, fill_order=rank[node])
        for node, (cpu, memory, gpus) in enumerate(makes)
    ]


def fleet(count: int = 6, weights: StrandingWeights | None = None) -> SharedNodes:
    return SharedNodes(capacities(count), KINDS, LeastStranded(POPULAR, weights))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, len(KINDS) - 1), st.integers(0, 99)), max_size=60))
def test_every_request_is_placed_at_the_cheapest_bid_of_all_nodes(steps: list[tuple[int, int, int]]) -> None:
    nodes, rule = fleet(), LeastStranded(POPULAR)
    held: list[tuple[int, HeldShare]] = []
    for leaves, kind, pick in steps:
        if not leaves and held:
            nodes.release(*held.pop(pick % len(held)))
            continue
        bids = [bid.cost for room in nodes.capacities if (bid := rule.bid(room, KINDS[kind]))]
        before = [rule.bid(room, KINDS[kind]) for room in nodes.capacities]
        got = nodes.reserve_cheapest(kind)
        assert (got is None) == (not bids)
        if got:
            assert before[got.node] == ShareBid(min(bids), got.gpus)
            held.append((kind, got))
    for kind, got in held:
        nodes.release(kind, got)
    fresh = capacities()
    assert [(r.cpu, r.memory, r.free_by_gpu, r.free_milli, r.unused_gpus) for r in nodes.capacities] == [
        (r.cpu, r.memory, r.free_by_gpu, r.free_milli, r.unused_gpus) for r in fresh
    ]


def cost_as_defined(
    room: NodeCapacity, request: ShareRequest, gpus: tuple[int, ...], weights: StrandingWeights
) -> float:
    """Return the cost of a placement, by applying it."""
    fragments = FragmentationMeasure(POPULAR)
    takes = sum(r.total_share * n for r, n in POPULAR.items())
    a_cpu = takes / sum(r.cpu * n for r, n in POPULAR.items())
    a_mib = takes / sum(r.memory * n for r, n in POPULAR.items())

    def stranded() -> float:
        return max(0.0, room.free_milli - min((room.cpu + 1) * a_cpu, (room.memory + 1) * a_mib))

    before, stood = fragments.fragmentation_of(room), stranded()
    room.reserve(request, gpus)
    after, stands = fragments.fragmentation_of(room), stranded()
    room.release(request, gpus)
    cost = weights.fill_order * room.fill_order + after - before + weights.stranded * (stands - stood)
    if request.is_partial:
        parts = {r.share: n for r, n in POPULAR.items() if r.is_partial}
        worth = best_value_by_free({**share_prices(parts), WHOLE_MILLI: 1.0})
        left = room.free_by_gpu[gpus[0]]
        cost += weights.lost_value * WHOLE_MILLI * (worth[left] - worth[left - request.share])
    return cost


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0, 190, 530, 999, WHOLE_MILLI]), min_size=1, max_size=4),
    st.integers(0, 30),
    st.sampled_from(KINDS),
)
def test_a_bid_is_the_cost_of_the_cheapest_gpu_of_its_node(left: list[int], cpu: int, request: ShareRequest) -> None:
    weights = StrandingWeights()
    room = NodeCapacity(cpu=cpu, memory=64, gpus=len(left), fill_order=0.25)
    for gpu, rest in enumerate(left):
        if rest < WHOLE_MILLI:
            room.reserve(ShareRequest(0, 0, 1, WHOLE_MILLI - rest), (gpu,))
    bid = LeastStranded(POPULAR, weights).bid(room, request)
    if not room.fits(request):
        assert bid is None
        return
    ways = [room.find_unused_gpus(request.gpus)]
    if request.is_partial:
        ways = [(gpu,) for gpu, rest in enumerate(left) if rest >= request.share]
    costs = [cost_as_defined(room, request, gpus, weights) for gpus in ways]
    assert bid is not None
    assert bid.cost == pytest.approx(min(costs))
    assert cost_as_defined(room, request, bid.gpus, weights) == pytest.approx(min(costs))


def test_a_request_that_fits_nowhere_is_refused_until_a_release() -> None:
    nodes = fleet(1)
    first, second = nodes.reserve_cheapest(3), nodes.reserve_cheapest(3)
    assert first
    assert second
    assert nodes.reserve_cheapest(0) is None
    nodes.release(3, first)
    assert nodes.reserve_cheapest(0) == HeldShare(0, first.gpus)


def test_a_chosen_share_is_held_and_an_occupied_one_refused() -> None:
    nodes = fleet(2)
    nodes.reserve_at(3, HeldShare(1, (0,)))
    with pytest.raises(ValueError, match="does not fit on GPUs"):
        nodes.reserve_at(0, HeldShare(1, (0,)))
    with pytest.raises(ValueError, match="is not held"):
        nodes.release(0, HeldShare(1, (1,)))
    assert nodes.capacities[1].free_by_gpu == [0, WHOLE_MILLI]


def test_outdated_bids_are_discarded() -> None:
    nodes = fleet(2)
    for _ in range(100):
        nodes.reserve_at(3, HeldShare(1, (0,)))
        nodes.release(3, HeldShare(1, (0,)))
        got = nodes.reserve_cheapest(0)
        assert got
        assert got.node == 0
        nodes.release(0, got)
    assert len(nodes._bids[0]) <= 4 * 2 + 64


def test_processors_are_kept_for_gpus_that_still_need_them() -> None:
    # Both nodes have two GPUs free; on the first there are just enough processors for them, on the second plenty.
    lean, rich = (NodeCapacity(cpu=cpu, memory=64, gpus=2) for cpu in (8, 20))
    nodes = SharedNodes([lean, rich], KINDS, LeastStranded(POPULAR))
    assert nodes.reserve_cheapest(5) == HeldShare(1, ())


def test_equal_nodes_are_filled_in_order_and_node_classes_evenly() -> None:
    ranks = fill_order_by_class(dict(enumerate(["a", "b", "a", "a", "a", "b"])))
    assert ranks == {0: 0.125, 2: 0.375, 3: 0.625, 4: 0.875, 1: 0.25, 5: 0.75}
    nodes = SharedNodes(
        [NodeCapacity(cpu=8, memory=32, gpus=2, fill_order=rank) for rank in (0.75, 0.25)],
        KINDS,
        LeastStranded(POPULAR),
    )
    assert [nodes.reserve_cheapest(0), nodes.reserve_cheapest(0)] == [HeldShare(1, (0,)), HeldShare(1, (0,))]


def test_demand_without_processors_strands_no_gpu() -> None:
    rule = LeastStranded({ShareRequest(0, 0, 1, 500): 1.0}, StrandingWeights(lost_value=0.0))
    bid = rule.bid(NodeCapacity(cpu=0, memory=0, gpus=1), ShareRequest(0, 0, 1, 500))
    assert bid == ShareBid(0.0, (0,))


def test_a_share_is_placed_on_the_gpu_that_it_fills() -> None:
    room = NodeCapacity(cpu=20, memory=64, gpus=3)
    room.reserve(ShareRequest(0, 0, 1, 530), (1,))
    room.reserve(ShareRequest(0, 0, 1, 1), (2,))
    bid = LeastStranded(POPULAR).bid(room, KINDS[0])
    assert bid
    assert bid.gpus == (1,)
