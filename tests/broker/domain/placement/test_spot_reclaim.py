"""The choice of spot leases to reclaim for a waiting request."""

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from broker.domain.geometry.gpu_state import EMPTY_GPU, PlacedSlice, state_of
from broker.domain.geometry.profiles import Profile
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement import spot_reclaim
from broker.domain.placement.spot_reclaim import (
    ReclaimableGpu,
    ReclaimableLease,
    ReclaimChoice,
    ReclaimRequest,
    choose_reclaim,
    state_without,
)
from tests.broker.domain.fleet import H100

HARDWARE, DEVICE = Isolation.HARDWARE, Isolation.DEVICE


def profile(name: str, isolation: Isolation = HARDWARE) -> Profile:
    return H100.profile(name, isolation)


WHOLE = profile("whole-gpu", DEVICE)
WHOLE_SLICE = PlacedSlice(WHOLE.placements[0], WHOLE)


def placed(name: str, start: int) -> PlacedSlice:
    return PlacedSlice(profile(name).placed_at(start), profile(name))


def gpu(name: str, *held: PlacedSlice, place: str = "a") -> ReclaimableGpu:
    return ReclaimableGpu(name, place, state_of(held), None)


def lease(name: str, *slices: tuple[str, PlacedSlice], lost: int = 1) -> ReclaimableLease:
    return ReclaimableLease(name, slices, lost)


def chosen(choice: ReclaimChoice | None) -> list[str] | None:
    return None if choice is None else [each.lease_id for each in choice.leases]


def test_nothing_is_reclaimed_where_the_request_fits_without() -> None:
    gpus = [gpu("g1"), gpu("g2", WHOLE_SLICE)]
    assert chosen(choose_reclaim(ReclaimRequest(WHOLE), gpus, [lease("l", ("g2", WHOLE_SLICE))])) == []


def test_nothing_is_reclaimed_where_the_request_does_not_fit_all_the_same() -> None:
    gpus = [gpu("g1", WHOLE_SLICE), gpu("g2", WHOLE_SLICE)]
    assert choose_reclaim(ReclaimRequest(WHOLE, 2), gpus, [lease("l", ("g2", WHOLE_SLICE))]) is None


def test_free_gpus_count_before_any_lease_is_reclaimed() -> None:
    gpus = [gpu("g1"), gpu("g2", WHOLE_SLICE), gpu("g3", WHOLE_SLICE)]
    leases = [lease("l2", ("g2", WHOLE_SLICE), lost=5), lease("l3", ("g3", WHOLE_SLICE), lost=4)]
    assert chosen(choose_reclaim(ReclaimRequest(WHOLE, 2), gpus, leases)) == ["l3"]


def test_the_fewest_leases_are_reclaimed_even_if_more_work_is_lost() -> None:
    small = [placed("1g.10gb", start) for start in range(7)]
    gpus = [gpu("g1", *small), gpu("g2", WHOLE_SLICE)]
    leases = [lease(f"s{n}", ("g1", each)) for n, each in enumerate(small)]
    leases.append(lease("w", ("g2", WHOLE_SLICE), lost=10_000))
    assert chosen(choose_reclaim(ReclaimRequest(WHOLE), gpus, leases)) == ["w"]


def test_one_gang_is_reclaimed_rather_than_two_leases() -> None:
    gpus = [gpu(name, WHOLE_SLICE) for name in ("g1", "g2", "g3", "g4")]
    leases = [
        lease("one", ("g1", WHOLE_SLICE)),
        lease("two", ("g2", WHOLE_SLICE)),
        lease("gang", ("g3", WHOLE_SLICE), ("g4", WHOLE_SLICE), lost=50),
    ]
    assert chosen(choose_reclaim(ReclaimRequest(WHOLE, 2), gpus, leases)) == ["gang"]
    assert chosen(choose_reclaim(ReclaimRequest(WHOLE, 3), gpus, leases)) == ["gang", "one"]


def test_a_gang_on_one_node_is_made_room_for_on_one_node() -> None:
    gpus = [gpu(f"{node}{n}", WHOLE_SLICE, place=node) for node in "ab" for n in range(2)]
    gpus.append(gpu("b2", place="b"))
    leases = [lease(each.gpu, (each.gpu, WHOLE_SLICE), lost=9 if each.gpu == "b0" else 1) for each in gpus[:4]]
    assert chosen(choose_reclaim(ReclaimRequest(WHOLE, 2), gpus, leases)) == ["b1"]


def test_only_gpus_that_are_linked_closely_enough_count() -> None:
    gpus = [gpu(name, WHOLE_SLICE) for name in ("g0", "g1", "g2", "g3")]
    leases = [lease(f"l{n}", (f"g{n}", WHOLE_SLICE), lost=4 - n) for n in range(4)]
    leases[3] = lease("l3", ("g3", WHOLE_SLICE), lost=100)
    pairs = ({"g0", "g1"}, {"g2", "g3"})
    linked = {"a": lambda free: max(len(pair & set(free)) for pair in pairs)}
    assert chosen(choose_reclaim(ReclaimRequest(WHOLE, 2, linked), gpus, leases)) == ["l0", "l1"]
    assert choose_reclaim(ReclaimRequest(WHOLE, 3, linked), gpus, leases) is None
    assert choose_reclaim(ReclaimRequest(WHOLE, 2, {}), gpus, leases) is None


def test_a_gpu_whose_tenants_may_not_share_is_emptied_first() -> None:
    share = min(H100.profiles_with(Isolation.SOFT), key=lambda each: each.memory)
    held = [PlacedSlice(place, share) for place in share.placements[:2]]
    leases = [lease(f"l{n}", ("g", each), lost=n) for n, each in enumerate(held)]
    shared = ReclaimableGpu("g", "a", state_of(held), None)
    full = ReclaimableGpu("g", "a", state_of([PlacedSlice(place, share) for place in share.placements]), None)
    assert chosen(choose_reclaim(ReclaimRequest(share), [shared], leases)) == []
    alone = ReclaimableGpu("g", "a", state_of(held), None, only_when_empty=True)
    assert chosen(choose_reclaim(ReclaimRequest(share), [alone], leases)) == ["l0", "l1"]
    assert chosen(choose_reclaim(ReclaimRequest(share), [full], leases)) == ["l0"]


def test_many_leases_on_one_gpu_are_taken_in_order_of_the_work_lost() -> None:
    share = min(H100.profiles_with(Isolation.NONE), key=lambda each: each.memory)
    held = [PlacedSlice(place, share) for place in share.placements]
    leases = [lease(f"l{n:02d}", ("g", each), lost=n) for n, each in enumerate(held)]
    wanted = ReclaimRequest(WHOLE)
    assert chosen(choose_reclaim(wanted, [gpu("g", *held)], leases)) == [each.lease_id for each in leases]


def test_a_slice_that_is_not_held_cannot_be_removed() -> None:
    with pytest.raises(ValueError, match="not held"):
        state_without(EMPTY_GPU, [placed("1g.10gb", 0)])


def brute_force(
    request: ReclaimRequest, gpus: Sequence[ReclaimableGpu], leases: Sequence[ReclaimableLease]
) -> tuple[int, int] | None:
    """Return the fewest leases and the least work lost, by trying everything."""
    best: tuple[int, int] | None = None
    for count in range(len(leases) + 1):
        for some in combinations(leases, count):
            by_place: dict[str, int] = {}
            for each in gpus:
                gone = [held for one in some for where, held in one.slices if where == each.gpu]
                state = state_without(each.state, gone)
                fits = 0
                for placement in sorted(request.profile.placements, key=lambda place: place.end):
                    if state.fits(request.profile, placement):
                        state, fits = state.with_held(request.profile, placement), fits + 1
                by_place[each.place] = by_place.get(each.place, 0) + fits
            if max(by_place.values()) >= request.quantity:
                cost = count, sum(each.lost_work for each in some)
                best = min(filter(None, (best, cost)))
        if best:
            return best
    return None


def random_fleet(rng: random.Random) -> tuple[list[ReclaimableGpu], list[ReclaimableLease]]:
    names, leases = ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "7g.80gb"], list[ReclaimableLease]()
    gpus = list[ReclaimableGpu]()
    for n in range(4):
        state, held = EMPTY_GPU, list[PlacedSlice]()
        for _ in range(4):
            name = rng.choice(names)
            each = placed(name, rng.choice(profile(name).placements).start)
            if state.fits(each.profile, each.placement):
                state = state.with_held(each.profile, each.placement)
                held.append(each)
        gpus.append(ReclaimableGpu(f"g{n}", "ab"[n % 2], state, None))
        leases += [
            lease(f"l{n}{m}", (f"g{n}", each), lost=rng.randrange(1, 100))
            for m, each in enumerate(held)
            if rng.random() < 0.7
        ]
    return gpus, leases


@pytest.mark.parametrize("seed", range(60))
def test_the_choice_is_the_cheapest_of_all(seed: int) -> None:
    rng = random.Random(seed)
    gpus, leases = random_fleet(rng)
    request = ReclaimRequest(profile(rng.choice(["1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"])), rng.randrange(1, 4))
    choice, best = choose_reclaim(request, gpus, leases), brute_force(request, gpus, leases)
    if best is None:
        assert choice is None
        return
    assert choice is not None
    assert len(choice.leases) >= best[0]
    # The place is chosen by a search that takes one after the other; within it the choice is exact.
    assert (len(choice.leases), sum(each.lost_work for each in choice.leases)) == best


def test_among_too_many_combinations_the_first_sufficient_choice_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_reclaim, "MAX_COMBINATIONS", 0)
    monkeypatch.setattr(spot_reclaim, "MAX_ON_A_GPU", 2)
    small = [placed("1g.10gb", start) for start in range(7)]
    gpus = [gpu("g1", *small), gpu("g2", WHOLE_SLICE)]
    leases = [lease(f"s{n}", ("g1", each), lost=n) for n, each in enumerate(small)]
    wanted = ReclaimRequest(profile("2g.20gb"))
    assert chosen(choose_reclaim(wanted, gpus, leases)) == ["s0", "s1"]
    assert choose_reclaim(ReclaimRequest(WHOLE, 3), gpus, leases) is None
