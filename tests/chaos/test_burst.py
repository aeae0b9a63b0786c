"""A short chaos run; `python -m tests.chaos.burst` is the long one."""

import random

import pytest

from tests.chaos.burst import EACH_ONCE, quick
from tests.chaos.running import product

LAUNCHES = 40


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a_burst_survives_the_death_of_worker_valkey_and_postgresql() -> None:
    with product(nodes=1) as running:
        burst = quick(running, LAUNCHES, random.Random(random.SystemRandom().randrange(10**6)))
        checks = burst.run()
        burst.history.close()
    print(*checks, sep="\n")
    assert [str(check) for check in checks if not check.holds] == []
    assert burst.verdict() == (f"chaos: {LAUNCHES} launches, {len(EACH_ONCE)} kills, 0 lost, 0 doubled, 0 overcharged")
    assert sum(kill.in_flight > 0 for kill in burst.kills) == len(burst.kills)
