"""Random runs with faults."""

import os

import pytest

from tests.database import OwnDatabase
from tests.sim.driver import live_and_rest, simulated

SEEDS = range(1, 1 + int(os.environ.get("SIM_SEEDS", "5")))  # SIM_SEEDS=500 for a night
STEPS = 400


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.deep
def test_the_invariants_hold_and_the_system_settles_after_faults(own_database: OwnDatabase, seed: int) -> None:
    with simulated(seed) as sim:
        live_and_rest(sim, steps=STEPS)
        assert sim.did["Crash"] + sum(sim.faults.hit.values()) > 10, sim.faults.rate
