"""Buckets of GPUs by state, and the choice of the cheapest."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.placement_policies.fleets import node_with
from broker.domain.geometry.profiles import Placement
from broker.domain.placement.buckets.state_buckets import EmptyGpus, StateBuckets
from broker.domain.placement.costs.state_ranks import rank_states
from broker.domain.placement.costs.state_tables import EMPTY, PlacementOption, StateTable, build_state_table
from tests.broker.domain.fleet import H100
from tests.broker.domain.placement.naive_pool import NaiveGpu, all_profiles

PROFILES = all_profiles(H100)
TABLE = build_state_table(PROFILES, 8)


def tightest(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[int, ...]:
    return (state == EMPTY, table.free_units(move.next_state))


RANKS = rank_states(TABLE, tightest)
NODES = (0, 0, 1, 1, 1)
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["place", "place", "place", "release", "hold"]), st.integers(0, 10**6)),
    max_size=40,
)


def cost(gpu: NaiveGpu, profile: int) -> tuple[int, ...] | None:
    """The least that a slice costs on a GPU, counted on the slices themselves."""
    if not gpu.seats(profile):
        return None
    return (not gpu.on, 8 - len(gpu.units()) - PROFILES[profile].memory)


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_random_operations_never_overlap_and_always_choose_the_least_cost(
    operations: list[tuple[str, int]],
) -> None:
    buckets, gpus = StateBuckets(RANKS, NODES), [NaiveGpu(PROFILES) for _ in NODES]
    live: list[tuple[int, int, int]] = []
    for what, number in operations:
        profile = number % len(PROFILES)
        if what == "place":
            costs = {n: price for n, gpu in enumerate(gpus) if (price := cost(gpu, profile)) is not None}
            emptiest = {n: sum(not c.on for c, m in zip(gpus, NODES, strict=True) if m == n) for n in NODES}
            seat = buckets.place_cheapest(profile)
            assert (seat is None) == (not costs)
            if seat:
                assert gpus[seat[0]].fits(profile, seat[1])
                assert costs[seat[0]] == min(costs.values())
                if not gpus[seat[0]].on:
                    least = min(count for count in emptiest.values() if count)
                    assert emptiest[NODES[seat[0]]] == least
                gpus[seat[0]].on.add((profile, seat[1]))
                live.append((seat[0], profile, seat[1]))
        elif what == "release" and live:
            gpu, its, start = live.pop(number % len(live))
            buckets.release(gpu, its, start)
            gpus[gpu].on.remove((its, start))
        elif what == "hold":
            gpu, places = number % len(gpus), PROFILES[profile].placements
            start = places[number % len(places)].start
            if gpus[gpu].fits(profile, start):
                buckets.place_at(gpu, profile, start)
                gpus[gpu].on.add((profile, start))
                live.append((gpu, profile, start))
            else:
                with pytest.raises(KeyError, match="does not fit at unit"):
                    buckets.place_at(gpu, profile, start)
    for number, gpu in enumerate(gpus):
        assert state_of(gpu) == buckets.state_of[number]
        assert number in buckets.gpus_by_state[buckets.state_of[number]]
    assert sum(len(bucket) for bucket in buckets.gpus_by_state) == len(gpus)
    for gpu, its, start in live:
        buckets.release(gpu, its, start)
    assert buckets.state_of == [EMPTY] * len(NODES)


def state_of(gpu: NaiveGpu) -> int:
    return list(accumulate(sorted(gpu.on), lambda s, each: TABLE.state_with[each[0]][each[1]][s], initial=EMPTY))[-1]


def test_releasing_a_slice_that_is_not_held_is_refused_without_changes() -> None:
    buckets = StateBuckets(RANKS, (0,))
    buckets.place_at(0, 0, 3)
    with pytest.raises(KeyError, match="no slice of profile 0 is at unit 2 of GPU 0"):
        buckets.release(0, 0, 2)
    assert buckets.state_of == [TABLE.state_with[0][3][EMPTY]]


def test_partly_used_gpus_can_be_added() -> None:
    full = TABLE.state_with[PROFILES.index(H100.whole)][0][EMPTY]
    buckets = StateBuckets(RANKS, (0, 0), (full, EMPTY))
    assert buckets.place_cheapest(0) == (1, Placement(0, 1).start)
    assert buckets.place_cheapest(PROFILES.index(H100.whole)) is None


def test_gpus_can_be_added_later_and_removed_permanently() -> None:
    buckets, whole = StateBuckets(RANKS, ()), PROFILES.index(H100.whole)
    assert buckets.place_cheapest(whole) is None
    first, second = buckets.add(2), buckets.add(0)
    buckets.remove(first)
    assert buckets.place_cheapest(whole) == (second, 0)
    assert buckets.place_cheapest(whole) is None
    for act in (buckets.place_at, buckets.release):
        with pytest.raises(KeyError):
            act(first, whole, 0)
    with pytest.raises(KeyError, match="GPU 0 is already out of service"):
        buckets.remove(first)


def test_setting_the_same_state_changes_nothing() -> None:
    buckets = StateBuckets(RANKS, (0, 0))
    buckets.set_state(0, EMPTY)
    assert sorted(buckets.gpus_by_state[EMPTY]) == [0, 1]


def test_the_node_with_fewest_but_enough_empty_gpus_is_found() -> None:
    empties = EmptyGpus(3)
    for gpu, node in enumerate((0, 1, 1, 1, 1, 2, 2)):
        empties.add(node, gpu)
    assert [node_with(empties, count) for count in range(1, 6)] == [0, 2, 1, 1, None]
    assert empties.gpu_on_lowest_count_node() == 0
    empties.remove(0, 0)
    assert [node_with(empties, count) for count in range(1, 6)] == [2, 2, 1, 1, None]
    empties.remove(1, 3)
    assert node_with(empties, 4) is None
    assert sorted(empties.gpus_on_node[1]) == [1, 2, 4]
