"""What becomes of a change: decided from where it stands and what its node says, and always towards an end."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.repartition import (
    ATTEMPTS,
    BLIND,
    CANCELLABLE,
    CLOSED,
    NEXT,
    OVER,
    NodeSeen,
    Standing,
    Step,
    Wanted,
    judge,
)

WANTED = Wanted("gpub-1", "gpub-1-again", {"1g.10gb": 7})
OLD = NodeSeen(config="gpub-0", state="success", tainted=True, slots={"card": 1})
TOLD = NodeSeen(config="gpub-1", tainted=True)
DONE = NodeSeen(config="gpub-1", state="success", tainted=True, slots={"1g.10gb": 7})
MINUTE = timedelta(minutes=1)
ASKING = (Step.DRAINING, Step.LABELLING, Step.CUTTING, Step.NUDGING)


def at(step: Step, *, minutes: float = 0, held: int = 0, attempts: int = 0, looked: bool = False) -> Standing:
    return Standing(step, minutes * MINUTE, held, attempts, looked)


@given(
    st.sampled_from(ASKING),
    st.builds(
        NodeSeen,
        config=st.sampled_from(["", "gpub-0", "gpub-1", "gpub-1-again"]),
        state=st.sampled_from(["", "pending", "rebooting", "success", "failed", "odd"]),
        tainted=st.booleans(),
        pods=st.integers(0, 2),
        slots=st.sampled_from([{}, {"card": 1}, {"1g.10gb": 7}]),
        there=st.booleans(),
    ),
    st.integers(0, 30),
    st.integers(0, 2),
    st.integers(0, 3),
    st.booleans(),
)
def test_whatever_a_node_says_the_next_step_is_one_of_the_machine(
    step: Step, seen: NodeSeen, minutes: int, held: int, attempts: int, looked: bool
) -> None:
    verdict = judge(at(step, minutes=minutes, held=held, attempts=attempts, looked=looked), seen, WANTED)
    assert verdict.step == step or verdict.step in NEXT[step]
    assert verdict.why
    if verdict.tell:  # nobody is thrown out: a node is told only when nobody was seen on it
        assert step is Step.NUDGING or not (held or seen.pods)
    if verdict.step is Step.OPENING:
        assert dict(seen.slots) == WANTED.slots


def test_every_step_leads_to_an_end() -> None:
    reach = {step: {step, *following} for step, following in NEXT.items()}
    for _ in NEXT:
        reach = {step: set().union(*(reach[each] for each in known)) for step, known in reach.items()}
    assert all(known & OVER for known in reach.values())
    assert {Step.DONE, Step.QUARANTINED, Step.CANCELLED} == OVER
    called_off = {Step.CANCELLING, Step.CANCELLED}
    assert {step for step, following in NEXT.items() if following & called_off} - called_off == CANCELLABLE
    assert not BLIND & CANCELLABLE
    assert CLOSED >= BLIND


def test_it_waits_for_leases_and_for_pods_that_we_know_nothing_of() -> None:
    assert judge(at(Step.DRAINING, held=1), OLD, WANTED).step is Step.DRAINING
    verdict = judge(at(Step.DRAINING, minutes=10_000), replace(OLD, pods=2), WANTED)
    assert (verdict.step, verdict.why) == (Step.DRAINING, "0 places are still held; 2 pods still there")
    assert judge(at(Step.DRAINING), OLD, WANTED).step is Step.LABELLING


def test_a_taint_that_somebody_took_away_is_set_again() -> None:
    assert judge(at(Step.DRAINING, held=1), replace(OLD, tainted=False), WANTED).taint
    verdict = judge(at(Step.DRAINING), replace(OLD, tainted=False), WANTED)
    assert (verdict.step, verdict.taint) == (Step.DRAINING, True)
    assert judge(at(Step.LABELLING), replace(OLD, tainted=False), WANTED).step is Step.DRAINING


def test_the_node_is_told_once_nobody_is_there() -> None:
    verdict = judge(at(Step.LABELLING), OLD, WANTED)
    assert (verdict.step, verdict.tell) == (Step.CUTTING, "gpub-1")
    assert judge(at(Step.LABELLING), replace(OLD, pods=1), WANTED).step is Step.DRAINING


def test_a_worker_that_told_it_and_died_tells_it_only_once() -> None:
    verdict = judge(at(Step.LABELLING, looked=True), replace(TOLD, state="pending"), WANTED)
    assert (verdict.step, verdict.tell) == (Step.CUTTING, "")


def test_what_an_earlier_change_told_in_vain_is_told_under_another_name() -> None:
    assert judge(at(Step.LABELLING), replace(TOLD, state="failed"), WANTED).step is Step.NUDGING
    assert judge(at(Step.LABELLING), DONE, WANTED).step is Step.CUTTING


def test_success_is_what_the_node_offers_and_not_what_it_says() -> None:
    assert judge(at(Step.CUTTING), DONE, WANTED).step is Step.OPENING
    verdict = judge(at(Step.CUTTING), replace(DONE, slots={"1g.10gb": 6}), WANTED)
    assert verdict.step is Step.CUTTING
    assert "does not offer" in verdict.why


@pytest.mark.parametrize("state", ["", "pending", "success"])
def test_a_node_that_is_silent_for_ten_minutes_is_told_again_and_then_quarantined(state: str) -> None:
    silent = replace(TOLD, state=state)
    assert judge(at(Step.CUTTING, minutes=9.9, attempts=1), silent, WANTED).step is Step.CUTTING
    assert judge(at(Step.CUTTING, minutes=10, attempts=1), silent, WANTED).step is Step.NUDGING
    assert judge(at(Step.CUTTING, minutes=10, attempts=ATTEMPTS), silent, WANTED).step is Step.QUARANTINED


def test_a_reboot_may_take_twice_as_long() -> None:
    reboots = replace(TOLD, state="rebooting")
    assert judge(at(Step.CUTTING, minutes=19, attempts=1), reboots, WANTED).step is Step.CUTTING
    assert judge(at(Step.CUTTING, minutes=20, attempts=1), reboots, WANTED).step is Step.NUDGING


def test_telling_again_is_the_other_name_and_back() -> None:
    first = judge(at(Step.NUDGING), TOLD, WANTED)
    assert (first.step, first.tell) == (Step.NUDGING, "gpub-1-again")
    second = judge(at(Step.NUDGING), replace(TOLD, config="gpub-1-again"), WANTED)
    assert (second.step, second.tell) == (Step.CUTTING, "gpub-1")


def test_failed_strangers_and_nodes_that_vanish_end_in_quarantine() -> None:
    assert judge(at(Step.CUTTING), replace(TOLD, state="failed"), WANTED).step is Step.QUARANTINED
    for step in (Step.CUTTING, Step.NUDGING):
        verdict = judge(at(step), replace(TOLD, config="all-disabled"), WANTED)
        assert verdict.step is Step.QUARANTINED
        assert "all-disabled" in verdict.why
    assert judge(at(Step.DRAINING), NodeSeen(there=False), WANTED).step is Step.QUARANTINED


def test_a_change_that_asks_nothing_is_not_judged() -> None:
    with pytest.raises(ValueError, match="asks its node nothing"):
        judge(at(Step.PLANNED), OLD, WANTED)
