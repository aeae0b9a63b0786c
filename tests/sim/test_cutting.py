"""Random runs with repartitioning and faults.

Four short lives here; CUT_SEEDS=5 CUT_STEPS=2000 are the ten thousand steps of a night.
"""

import os
from datetime import timedelta

import pytest

from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Repartition
from broker.services.repartition import node_partitioners
from tests.sim.cutting import HEALED_WITHIN, Cutting, WatchedHands, lost
from tests.simulation import Simulation, simulate

SEEDS = range(1, 1 + int(os.environ.get("CUT_SEEDS", "4")))
STEPS = int(os.environ.get("CUT_STEPS", "150"))


@pytest.fixture
def sim(db: None):  # type: ignore[no-untyped-def]
    with simulate() as sim:
        yield sim


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_a_repartition_evicts_no_lease_and_always_ends(
    sim: Simulation, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Cutting(seed, sim)
    hands = WatchedHands(world)
    monkeypatch.setattr(node_partitioners, "_load_partitioner", lambda path: hands)
    for number in range(STEPS):
        world.step()
        if number % 5 == 0:
            world.check()
    world.rest()
    world.check()
    assert lost(world) == []
    assert max(world.healed(), default=timedelta()) <= HEALED_WITHIN
    done = Repartition.objects.filter(step=RepartitionStep.DONE).count()
    assert done >= STEPS // 200, world.did
    print(f"seed {seed}: {STEPS} steps, {done} changes done, {len(world.healed())} wedges healed, {dict(world.did)}")
