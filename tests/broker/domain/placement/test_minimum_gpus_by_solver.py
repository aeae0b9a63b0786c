"""The closed form of the minimum of GPUs, compared with a solver."""

from collections.abc import Iterable, Sequence
from functools import cache
from random import Random

import pytest
from ortools.sat.python import cp_model

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.placement.costs.minimum_gpus import min_gpus
from broker.domain.placement.costs.state_tables import build_state_table
from tests.broker.domain.fleet import MODELS, plain
from tests.broker.domain.placement.naive_pool import all_layouts

MULTISETS = 1000
MOST = (3, 12, 40)  # few of each, where every GPU counts, up to fleets of a few dozen GPUs
Counts = tuple[int, ...]
# Profiles without known placements are not sold.
SOLD = {model: tuple(each for each in plain(model) if each.placements) for model in MODELS}
MIGS = tuple(model for model, profiles in SOLD.items() if profiles)


@cache
def full_gpus(model: GpuModelSpec) -> tuple[Counts, ...]:
    """Return the maximal contents of one GPU, as counts by profile."""
    profiles = SOLD[model]
    held = {tuple(sum(p == number for p, _ in cut) for number in range(len(profiles))) for cut in all_layouts(profiles)}
    return tuple(sorted(each for each in held if not any(_less(each, other) for other in held)))


def _less(one: Counts, other: Counts) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def solved(ways: Iterable[Counts], wanted: Sequence[int]) -> int:
    """Return the fewest GPUs, proven by CP-SAT."""
    model = cp_model.CpModel()
    taken = [(way, model.new_int_var(0, sum(wanted), str(way))) for way in ways]
    for profile, count in enumerate(wanted):
        model.add(sum(way[profile] * times for way, times in taken) >= count)
    model.minimize(sum(times for _, times in taken))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


@pytest.mark.deep
def test_the_minimum_of_gpus_matches_a_solver_for_a_thousand_random_multisets() -> None:
    assert len(MIGS) >= 12
    chance, tables = Random(1), {model.name: build_state_table(SOLD[model], model.grid) for model in MIGS}
    differing = []
    for number in range(MULTISETS):
        model = MIGS[number % len(MIGS)]
        wanted = [chance.randint(0, chance.choice(MOST)) for _ in SOLD[model]]
        named, proven = min_gpus(tables[model.name], wanted), solved(full_gpus(model), wanted)
        if named != proven:
            differing.append((model.name, wanted, named, proven))
    assert not differing
