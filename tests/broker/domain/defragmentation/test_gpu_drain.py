"""Drain of sparsely used GPUs, within a relocation budget."""

from bench.placement_policies.consolidation import consolidate_gpu
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from tests.broker.domain.defragmentation.gpus import draw, fleet


def test_last_slices_of_a_gpu_move_to_partly_used_gpus() -> None:
    gpus = fleet("1@0 1@2", "3@0 1@4", "")
    steps = consolidate_gpu(gpus, 0)
    assert [(step.allocation, step.to_gpu, step.cost) for step in steps] == [("0.0", 1, 1), ("0.2", 1, 1)]
    assert draw(gpus)[0] == draw(gpus)[2] == ""


def test_a_gpu_is_drained_completely_or_not_at_all() -> None:
    gpus = fleet("1@0 1@2", "4@0 2@4", "")
    assert consolidate_gpu(gpus, 0) == ()
    assert draw(gpus) == ["1@0 1@2", "4@0 2@4", ""]


def test_a_well_used_gpu_is_not_drained() -> None:
    gpus = fleet("3@0", "4@0")
    assert consolidate_gpu(gpus, 0) == ()
    assert consolidate_gpu(gpus, 0, compute=3) != ()


def test_an_empty_gpu_needs_no_relocation() -> None:
    assert consolidate_gpu(fleet("", "3@0"), 0) == ()


def test_a_gpu_with_an_immovable_slice_is_not_drained() -> None:
    assert consolidate_gpu(fleet("1@0!", "3@0"), 0) == ()


def test_a_drain_stays_within_its_relocation_budget() -> None:
    gpus, budget = fleet("1@0 1@2", "1@0", "3@0", "3@0"), RelocationBudget(2)
    assert len(consolidate_gpu(gpus, 0, budget=budget)) == 2
    assert consolidate_gpu(gpus, 1, budget=budget) == ()
