"""Dunning schedules and the intervals between steps."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from billing.domain.dunning import DunningAction, DunningStage, next_stage_at, parse_schedule

DUE = datetime(2026, 11, 15, tzinfo=UTC)
DAY = timedelta(days=1)
STEPS = parse_schedule(["3:remind", "10:remind", "17:suspend", "30:end"])


def test_dunning_steps_are_parsed_in_order() -> None:
    assert STEPS[2] == DunningStage(17 * DAY, DunningAction.SUSPEND)
    assert parse_schedule([]) == ()


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (["3"], "'3' is not a step"),
        (["3:shout"], "write days and remind, suspend, end"),
        (["-3:remind"], "is not a step"),
        (["10:remind", "3:remind"], "not in the order of their days"),
        (["3:remind", "3:suspend"], "each on a day of its own"),
    ],
)
def test_an_invalid_dunning_step_is_refused_with_a_reason(written: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_schedule(written)


def test_a_late_reminder_leaves_the_full_interval_to_the_next_step() -> None:
    assert next_stage_at(STEPS, due=DUE, done=[]) == DUE + 3 * DAY
    assert next_stage_at(STEPS, due=DUE, done=[DUE + 3 * DAY]) == DUE + 10 * DAY
    assert next_stage_at(STEPS, due=DUE, done=[DUE + 20 * DAY]) == DUE + 27 * DAY
    assert next_stage_at(STEPS, due=DUE, done=[DUE] * 4) is None


@given(some.lists(some.integers(0, 400), min_size=1, max_size=60))
def test_dunning_steps_run_once_and_keep_their_intervals(days: list[int]) -> None:
    done: list[datetime] = []
    for day in sorted(days):
        now = DUE + day * DAY
        at = next_stage_at(STEPS, due=DUE, done=done)
        if at is not None and at <= now:
            done.append(now)
    for n, moment in enumerate(done):
        assert moment >= DUE + STEPS[n].after
        assert n == 0 or moment - done[n - 1] >= STEPS[n].after - STEPS[n - 1].after
