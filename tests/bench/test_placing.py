"""Published placement rules follow their papers, and the oracle misses nothing."""

import importlib
import pkgutil
from functools import cache
from random import Random

import pytest
from django.conf import settings

import bench
from bench.placement_policies import rules
from bench.placement_policies.fleets import Bucketed, FirstFit, Fleet, Oracle
from bench.placement_policies.gpu_profiles import DOUBLE, FOUR, ONE, PROFILES, TABLE, THREE, TWO, WHOLE
from bench.placement_policies.policies import MOVING, ORACLE, policies
from bench.placement_policies.workloads import Request
from broker.domain.placement.costs.state_ranks import CostRule, rank_states
from broker.domain.placement.costs.state_tables import EMPTY

MODULES = [each.name for each in pkgutil.walk_packages(bench.__path__, "bench.") if not each.ispkg]
FORECAST = (5.0, 2.0, 3.0, 2.0, 2.0, 6.0)
ONLY_WHOLE, ONLY_DOUBLE = (0, 0, 0, 0, 0, 1.0), (0, 1.0, 0, 0, 0, 0)


@pytest.mark.parametrize("module", MODULES)
def test_every_benchmark_can_be_started(module: str) -> None:
    assert importlib.import_module(module)
    assert settings.ROOT_URLCONF == "config.urls", "other tests of this run ask for its addresses"


def chosen(rule: CostRule, profile: int, *gpus: tuple[tuple[int, int], ...]) -> tuple[int, int] | None:
    """Return the GPU and unit that a rule chooses, given existing slices."""
    buckets = Bucketed(rank_states(TABLE, rule), [0] * len(gpus)).buckets
    for gpu, lies in enumerate(gpus):
        for its, start in lies:
            buckets.place_at(gpu, its, start)
    return buckets.place_cheapest(profile)


@pytest.mark.parametrize(
    ("rule", "profile", "gpus", "seat"),
    [
        # A whole GPU is worth most to FGD where only those are asked for: what is broken is broken on.
        (rules.fgd(ONLY_WHOLE), ONE, ((), ((THREE, 4),)), (1, None)),
        # Where 1g.20gb alone is asked for, a pair of units is not torn.
        (rules.fgd(ONLY_DOUBLE), ONE, (((THREE, 0), (ONE, 4)),), (0, 5)),
        (rules.best_fit, ONE, ((), ((FOUR, 0),), ((FOUR, 0), (TWO, 4))), (2, 6)),
        (rules.most_legal, ONE, (((FOUR, 0),), ()), (1, 6)),
        (rules.least_blocked, TWO, (((THREE, 4),), ()), (0, None)),
        (rules.compute_value(ONLY_WHOLE), ONE, ((), ((TWO, 0),)), (1, None)),
    ],
)
def test_each_published_rule_chooses_the_expected_slot(
    rule: CostRule, profile: int, gpus: tuple[tuple[tuple[int, int], ...], ...], seat: tuple[int, int | None]
) -> None:
    found = chosen(rule, profile, *gpus)
    assert found is not None
    assert found[0] == seat[0]
    assert seat[1] in (None, found[1])


@pytest.mark.parametrize(
    ("rule", "starts"),
    [
        (rules.in_vendor_order, {ONE: 6, DOUBLE: 6, TWO: 4, THREE: 4, FOUR: 0, WHOLE: 0}),
        (rules.in_hami_order, {ONE: 6, DOUBLE: 6, TWO: 0, THREE: 4, FOUR: 0, WHOLE: 0}),
    ],
)
def test_first_fit_uses_the_first_gpu_and_the_placement_order_of_its_rule(
    rule: CostRule, starts: dict[int, int]
) -> None:
    for profile, start in starts.items():
        fleet = FirstFit(rank_states(TABLE, rule), [0, 0])
        assert fleet.place(0, Request(profile, 1, 1.0))
        assert fleet.held[0] == (profile, [(0, start)])


@cache
def fits_on_one(state: int, wanted: tuple[int, ...]) -> bool:
    """Try every order and every place."""
    if not wanted:
        return True
    return any(
        fits_on_one(move.next_state, wanted[:n] + wanted[n + 1 :])
        for n, profile in enumerate(wanted)
        for move in TABLE.options[profile][state]
    )


def test_the_oracle_places_exactly_the_requests_that_fit() -> None:
    chance = Random(7)
    for _ in range(300):
        oracle, taken = Oracle([0]), list[int]()
        for number in range(8):
            profile = chance.randrange(len(PROFILES))
            fits = fits_on_one(EMPTY, tuple(sorted([*taken, profile])))
            assert oracle.place(number, Request(profile, 1, 1.0)) is fits
            if fits:
                taken.append(profile)


@pytest.mark.parametrize("name", [*policies(FORECAST, 1)])
def test_every_fleet_is_empty_after_all_releases(name: str) -> None:
    fleet: Fleet = policies(FORECAST, 1)[name]([0, 0, 1, 1])
    chance, live, refused = Random(3), list[int](), 0
    for number in range(400):
        count = 2 if chance.random() < 0.1 else 1
        profile = WHOLE if count > 1 else chance.randrange(len(PROFILES))
        if fleet.place(number, Request(profile, count, 1.0)):
            live.append(number)
        else:
            refused += 1
        while len(live) > 6 or (live and chance.random() < 0.4):
            fleet.release(live.pop(chance.randrange(len(live))))
        assert (fleet.active() > 0) is bool(live)
    for number in live:
        fleet.release(number)
    assert fleet.active() == 0
    assert refused
    assert (fleet.moves > 0) is (name in MOVING) or name == ORACLE
