"""Buckets of GPUs that prefer warm slices at equal cost."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import PlacedSlice
from broker.domain.placement.buckets.warm_buckets import WarmBuckets
from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.bid_price_rule import PlacementCost, bid_price_ranks
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.costs.state_tables import EMPTY, NO_STATE, PlacementOption
from broker.domain.placement.warm_slices import (
    NO_WARM_SLICES,
    PartitioningEffort,
    WarmSlices,
    after_placing,
    after_release,
    partitioning_effort,
)
from tests.broker.domain.fleet import A30, H100, SEVEN, TWO
from tests.broker.domain.placement.naive_pool import all_profiles

NODES = (0, 0, 1, 1, 1, 2)


def ranks_of(model: GpuModelSpec) -> StateRanks:
    profiles = all_profiles(model)
    worth = slice_prices.default_prices(profiles, model.grid, model.compute)
    return bid_price_ranks(profiles, model.grid, tuple(worth), counted=True)


class Recounted:
    """The leftover slices of each GPU, searched one by one."""

    def __init__(self, buckets: WarmBuckets) -> None:
        self.buckets, self.ranks, self.profiles = buckets, buckets.ranks, buckets.table.profiles
        self.warm: list[WarmSlices] = [NO_WARM_SLICES] * len(NODES)

    def seats(self, number: int) -> list[tuple[PlacementCost, PartitioningEffort, int, PlacementOption]]:
        """Return every free slot with its cost and partitioning effort."""
        profile, found = self.profiles[number], []
        for gpu, state in enumerate(self.buckets.state_of):
            if state != NO_STATE and self.ranks.fits(number, state):
                cost = PlacementCost(*self.ranks.cost[number][self.ranks.states_by_rank[number].index(state)])
                for move in self.ranks.equal_options[number][state]:
                    how = partitioning_effort(self.warm[gpu], profile, profile.placed_at(move.start))
                    found.append((cost, how, gpu, move))
        return found

    def check(self) -> None:
        buckets, seats = self.buckets, self.buckets.slots
        assert buckets.leftovers == [seats.to_bits(warm) for warm in self.warm]
        gpus = range(len(NODES))
        for state in {*buckets.state_of, EMPTY}:
            in_it = [gpu for gpu in gpus if buckets.state_of[gpu] == state]
            assert sorted(buckets.gpus_in_state(state)) == in_it
            assert buckets.gpu_count(state) == len(in_it)
        for gpu in gpus:
            alike = [
                n
                for n in gpus
                if (buckets.state_of[n], buckets.leftovers[n]) == (buckets.state_of[gpu], buckets.leftovers[gpu])
            ]
            assert sorted(buckets.gpus_in_same_bucket(gpu)) == alike
            assert {buckets.bucket_key(n) for n in alike} == {buckets.bucket_key(gpu)}
        for number, bits in enumerate(self.ranks.rank_bit):
            there = 0
            for state in buckets.state_of:
                there |= bits[state]
            assert buckets.all_occupied_ranks(number) == there


@pytest.mark.parametrize("model", [H100, A30], ids=["H100", "A30"])
@pytest.mark.deep
def test_the_fastest_of_the_cheapest_slots_is_chosen_and_buckets_match_a_recount(
    model: GpuModelSpec,
) -> None:
    ranks = ranks_of(model)

    @settings(max_examples=60, deadline=None)
    @given(st.randoms(use_true_random=False))
    def check_random_operations(chance: Random) -> None:
        buckets = WarmBuckets(ranks, NODES)
        counted, live = Recounted(buckets), list[tuple[int, int, int]]()
        for _ in range(60):
            number = chance.randrange(len(ranks.states_by_rank))
            profile = buckets.table.profiles[number]
            act = chance.randrange(8)
            if act < 4:
                seats = counted.seats(number)
                nodes = {node: len(on) for node, on in enumerate(buckets.empty.gpus_on_node) if on}
                if taken := buckets.place_cheapest(number):
                    gpu, start = taken
                    least = min(seats)[0]
                    equal = [each for each in seats if each[0] == least]
                    mine = [each for each in equal if (each[2], each[3].start) == taken]
                    assert mine, "warmth never changes what a place costs"
                    if least.uses_empty_gpu:
                        # Whole nodes stay whole first: of a node with fewest empty GPUs, one that is had most quickly.
                        assert nodes[NODES[gpu]] == min(nodes.values())
                        equal = [each for each in equal if NODES[each[2]] == NODES[gpu]]
                    assert mine[0][1] == min(each[1] for each in equal) == buckets.last_effort
                    live.append((gpu, number, start))
                    counted.warm[gpu] = after_placing(counted.warm[gpu], profile, profile.placed_at(start))
                else:
                    assert not seats
            elif act < 7 and live:
                gpu, number, start = live.pop(chance.randrange(len(live)))
                profile = buckets.table.profiles[number]
                buckets.release(gpu, number, start)
                counted.warm[gpu] = after_release(counted.warm[gpu], profile, profile.placed_at(start))
            elif seats := counted.seats(number):
                _, _, gpu, (start, _) = chance.choice(seats)
                buckets.place_at(gpu, number, start)
                live.append((gpu, number, start))
                counted.warm[gpu] = after_placing(counted.warm[gpu], profile, profile.placed_at(start))
            counted.check()

    check_random_operations()


def test_buckets_accept_leftover_slices_and_reject_invalid_states() -> None:
    ranks = ranks_of(H100)
    seven = ranks.table.profiles.index(SEVEN)
    seats = WarmBuckets(ranks, ()).slots
    left = seats.to_bits(frozenset({PlacedSlice(SEVEN.placed_at(0), SEVEN)}))
    buckets = WarmBuckets(ranks, (0, 0, 0), (EMPTY,) * 3, (0, left, 0), seats)
    assert (buckets.place_cheapest(seven), buckets.last_effort) == ((1, 0), PartitioningEffort.REUSE)
    with pytest.raises(KeyError, match="no slice of profile"):
        buckets.release(0, seven, 0)
    with pytest.raises(KeyError, match="does not fit"):
        buckets.place_at(1, seven, 0)
    with pytest.raises(KeyError):
        seats.to_bits(frozenset({PlacedSlice(A30.profiles[0].placements[0], A30.profiles[0])}))


def test_a_removed_gpu_returns_without_warm_slices() -> None:
    ranks = ranks_of(H100)
    two = ranks.table.profiles.index(TWO)
    buckets = WarmBuckets(ranks, (0,))
    gpu, start = buckets.place_cheapest(two) or (0, 0)
    buckets.release(gpu, two, start)
    assert buckets.leftovers[0]
    buckets.remove(0)
    buckets.add_as(0, 0, EMPTY)
    assert (buckets.leftovers, buckets.all_occupied_ranks(two) != 0) == ([0], True)
    assert buckets.add(1) == 1
    assert buckets.leftovers == [0, 0]
