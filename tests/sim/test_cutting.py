"""Random steps while nodes are cut anew: nobody is thrown out, wedges heal, and every change ends.

Four short lives here; CUT_SEEDS=5 CUT_STEPS=2000 are the ten thousand steps of a night.
"""

import os
from datetime import timedelta

import pytest

from broker.domain.repartition import Step
from broker.models import LayoutChange
from broker.services.layouts import machines
from tests.sim.cutting import HEALED_WITHIN, Cutting, WatchedHands, lost
from tests.world import Life, alive

SEEDS = range(1, 1 + int(os.environ.get("CUT_SEEDS", "4")))
STEPS = int(os.environ.get("CUT_STEPS", "150"))


@pytest.fixture
def life(db: None):  # type: ignore[no-untyped-def]
    with alive() as life:
        yield life


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_is_thrown_out_and_every_change_ends(
    life: Life, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Cutting(seed, life)
    hands = WatchedHands(world)
    monkeypatch.setattr(machines, "_named", lambda path: hands)
    for number in range(STEPS):
        world.step()
        if number % 5 == 0:
            world.check()
    world.rest()
    world.check()
    assert lost(world) == []
    assert max(world.healed(), default=timedelta()) <= HEALED_WITHIN
    done = LayoutChange.objects.filter(step=Step.DONE).count()
    assert done >= STEPS // 200, world.did
    print(
        f"seed {seed}: {STEPS} steps, {done} changes done, {len(world.healed())} wedges healed, {dict(world.did)}"
    )
