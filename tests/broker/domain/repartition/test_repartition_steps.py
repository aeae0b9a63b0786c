"""The next step of a repartition, by its state and node."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.repartition.repartition_steps import (
    CANCELLABLE_STEPS,
    CLOSED_STEPS,
    FINAL_STEPS,
    MAX_ATTEMPTS,
    NEXT_STEPS,
    UNRELIABLE_INVENTORY_STEPS,
    ObservedLayout,
    RepartitionProgress,
    RepartitionStep,
    TargetLayout,
    decide_next_step,
)

WANTED = TargetLayout("gpub-1", "gpub-1-again", {"1g.10gb": 7})
OLD = ObservedLayout(config="gpub-0", state="success", tainted=True, slots={"whole-gpu": 1})
REQUESTED = ObservedLayout(config="gpub-1", tainted=True)
DONE = ObservedLayout(config="gpub-1", state="success", tainted=True, slots={"1g.10gb": 7})
MINUTE = timedelta(minutes=1)
ASKING = (
    RepartitionStep.DRAINING,
    RepartitionStep.CONFIGURING,
    RepartitionStep.REPARTITIONING,
    RepartitionStep.RETRYING,
)


def at(
    step: RepartitionStep, *, minutes: float = 0, held: int = 0, attempts: int = 0, looked: bool = False
) -> RepartitionProgress:
    return RepartitionProgress(step, minutes * MINUTE, held, attempts, looked)


@given(
    st.sampled_from(ASKING),
    st.builds(
        ObservedLayout,
        config=st.sampled_from(["", "gpub-0", "gpub-1", "gpub-1-again"]),
        state=st.sampled_from(["", "pending", "rebooting", "success", "failed", "odd"]),
        tainted=st.booleans(),
        pods=st.integers(0, 2),
        slots=st.sampled_from([{}, {"whole-gpu": 1}, {"1g.10gb": 7}]),
        exists=st.booleans(),
    ),
    st.integers(0, 30),
    st.integers(0, 2),
    st.integers(0, 3),
    st.booleans(),
)
def test_every_observation_leads_to_an_allowed_next_step(
    step: RepartitionStep, seen: ObservedLayout, minutes: int, held: int, attempts: int, looked: bool
) -> None:
    verdict = decide_next_step(at(step, minutes=minutes, held=held, attempts=attempts, looked=looked), seen, WANTED)
    assert verdict.step == step or verdict.step in NEXT_STEPS[step]
    assert verdict.reason
    if verdict.config_to_apply:  # a layout is applied only to a node without leases and pods
        assert step is RepartitionStep.RETRYING or not (held or seen.pods)
    if verdict.step is RepartitionStep.REOPENING:
        assert dict(seen.slots) == WANTED.slots


def test_every_step_leads_to_an_end() -> None:
    reach = {step: {step, *following} for step, following in NEXT_STEPS.items()}
    for _ in NEXT_STEPS:
        reach = {step: set().union(*(reach[each] for each in known)) for step, known in reach.items()}
    assert all(known & FINAL_STEPS for known in reach.values())
    assert {RepartitionStep.DONE, RepartitionStep.QUARANTINED, RepartitionStep.CANCELLED} == FINAL_STEPS
    called_off = {RepartitionStep.CANCELLING, RepartitionStep.CANCELLED}
    assert {step for step, following in NEXT_STEPS.items() if following & called_off} - called_off == CANCELLABLE_STEPS
    assert not UNRELIABLE_INVENTORY_STEPS & CANCELLABLE_STEPS
    assert CLOSED_STEPS >= UNRELIABLE_INVENTORY_STEPS


def test_draining_waits_for_leases_and_unknown_pods() -> None:
    assert decide_next_step(at(RepartitionStep.DRAINING, held=1), OLD, WANTED).step is RepartitionStep.DRAINING
    verdict = decide_next_step(at(RepartitionStep.DRAINING, minutes=10_000), replace(OLD, pods=2), WANTED)
    assert (verdict.step, verdict.reason) == (
        RepartitionStep.DRAINING,
        "0 slices are still in use; 2 pods still running",
    )
    assert decide_next_step(at(RepartitionStep.DRAINING), OLD, WANTED).step is RepartitionStep.CONFIGURING


def test_a_removed_taint_is_set_again() -> None:
    assert decide_next_step(at(RepartitionStep.DRAINING, held=1), replace(OLD, tainted=False), WANTED).taint
    verdict = decide_next_step(at(RepartitionStep.DRAINING), replace(OLD, tainted=False), WANTED)
    assert (verdict.step, verdict.taint) == (RepartitionStep.DRAINING, True)
    assert (
        decide_next_step(at(RepartitionStep.CONFIGURING), replace(OLD, tainted=False), WANTED).step
        is RepartitionStep.DRAINING
    )


def test_the_layout_is_applied_once_the_node_is_empty() -> None:
    verdict = decide_next_step(at(RepartitionStep.CONFIGURING), OLD, WANTED)
    assert (verdict.step, verdict.config_to_apply) == (RepartitionStep.REPARTITIONING, "gpub-1")
    assert (
        decide_next_step(at(RepartitionStep.CONFIGURING), replace(OLD, pods=1), WANTED).step is RepartitionStep.DRAINING
    )


def test_a_layout_applied_before_a_worker_crash_is_not_applied_again() -> None:
    verdict = decide_next_step(
        at(RepartitionStep.CONFIGURING, looked=True), replace(REQUESTED, state="pending"), WANTED
    )
    assert (verdict.step, verdict.config_to_apply) == (RepartitionStep.REPARTITIONING, "")


def test_a_layout_that_failed_before_is_applied_under_another_name() -> None:
    assert (
        decide_next_step(at(RepartitionStep.CONFIGURING), replace(REQUESTED, state="failed"), WANTED).step
        is RepartitionStep.RETRYING
    )
    assert decide_next_step(at(RepartitionStep.CONFIGURING), DONE, WANTED).step is RepartitionStep.REPARTITIONING


def test_a_step_succeeds_only_when_the_node_offers_the_slots() -> None:
    assert decide_next_step(at(RepartitionStep.REPARTITIONING), DONE, WANTED).step is RepartitionStep.REOPENING
    verdict = decide_next_step(at(RepartitionStep.REPARTITIONING), replace(DONE, slots={"1g.10gb": 6}), WANTED)
    assert verdict.step is RepartitionStep.REPARTITIONING
    assert "does not offer" in verdict.reason


@pytest.mark.parametrize("state", ["", "pending", "success"])
def test_a_node_without_progress_for_ten_minutes_is_retried_and_then_quarantined(state: str) -> None:
    silent = replace(REQUESTED, state=state)
    assert (
        decide_next_step(at(RepartitionStep.REPARTITIONING, minutes=9.9, attempts=1), silent, WANTED).step
        is RepartitionStep.REPARTITIONING
    )
    assert (
        decide_next_step(at(RepartitionStep.REPARTITIONING, minutes=10, attempts=1), silent, WANTED).step
        is RepartitionStep.RETRYING
    )
    assert (
        decide_next_step(at(RepartitionStep.REPARTITIONING, minutes=10, attempts=MAX_ATTEMPTS), silent, WANTED).step
        is RepartitionStep.QUARANTINED
    )


def test_a_rebooting_node_is_retried_only_after_twenty_minutes() -> None:
    reboots = replace(REQUESTED, state="rebooting")
    assert (
        decide_next_step(at(RepartitionStep.REPARTITIONING, minutes=19, attempts=1), reboots, WANTED).step
        is RepartitionStep.REPARTITIONING
    )
    assert (
        decide_next_step(at(RepartitionStep.REPARTITIONING, minutes=20, attempts=1), reboots, WANTED).step
        is RepartitionStep.RETRYING
    )


def test_a_retry_applies_the_alias_and_then_the_name() -> None:
    first = decide_next_step(at(RepartitionStep.RETRYING), REQUESTED, WANTED)
    assert (first.step, first.config_to_apply) == (RepartitionStep.RETRYING, "gpub-1-again")
    second = decide_next_step(at(RepartitionStep.RETRYING), replace(REQUESTED, config="gpub-1-again"), WANTED)
    assert (second.step, second.config_to_apply) == (RepartitionStep.REPARTITIONING, "gpub-1")


def test_a_failed_foreign_or_vanished_node_is_quarantined() -> None:
    assert (
        decide_next_step(at(RepartitionStep.REPARTITIONING), replace(REQUESTED, state="failed"), WANTED).step
        is RepartitionStep.QUARANTINED
    )
    for step in (RepartitionStep.REPARTITIONING, RepartitionStep.RETRYING):
        verdict = decide_next_step(at(step), replace(REQUESTED, config="all-disabled"), WANTED)
        assert verdict.step is RepartitionStep.QUARANTINED
        assert "all-disabled" in verdict.reason
    assert (
        decide_next_step(at(RepartitionStep.DRAINING), ObservedLayout(exists=False), WANTED).step
        is RepartitionStep.QUARANTINED
    )


def test_no_next_step_is_decided_for_a_planned_repartition() -> None:
    with pytest.raises(ValueError, match="asks its node nothing"):
        decide_next_step(at(RepartitionStep.PLANNED), OLD, WANTED)
