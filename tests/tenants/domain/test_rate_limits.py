"""Blocks of requests that processes take from a shared count."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tenants.domain.rate_limits import Charge, RateLimit, RequestCounts

NOW = datetime(2026, 11, 27, 9, 0, 30, tzinfo=UTC)


def test_a_window_ends_at_a_whole_multiple_of_its_length() -> None:
    limit = RateLimit("token", 10, window_s=60)
    assert limit.seconds_left(NOW) == 30
    assert limit.window_at(NOW + timedelta(seconds=29)) == limit.window_at(NOW)
    assert limit.window_at(NOW + timedelta(seconds=30)) == limit.window_at(NOW) + 1


def test_small_limits_are_counted_one_by_one_and_large_ones_in_blocks() -> None:
    assert [RateLimit("x", amount).block for amount in (1, 49, 100, 6000, 10**6)] == [1, 1, 2, 120, 200]


@given(amount=st.integers(1, 400), choices=st.lists(st.integers(0, 2), max_size=600))
def test_processes_together_let_in_at_most_the_limit_and_one_request_in_progress_each(
    amount: int, choices: list[int]
) -> None:
    charge, processes = Charge(RateLimit("token", amount), "tok_1"), [RequestCounts() for _ in range(3)]
    shared = let_in = 0
    for chosen in choices:
        process = processes[chosen]
        if process.is_exceeded(charge, NOW):
            continue
        let_in += 1
        if not process.spend(charge, NOW):
            shared += charge.limit.block
            process.add_block(charge, shared, NOW)
    assert let_in <= amount + len(processes)
    if all(process.is_exceeded(charge, NOW) for process in processes):
        assert let_in >= amount


def test_a_new_window_begins_at_zero() -> None:
    charge, counts = Charge(RateLimit("token", 1), "tok_1"), RequestCounts()
    assert not counts.spend(charge, NOW)
    counts.add_block(charge, 1, NOW)
    assert counts.is_exceeded(charge, NOW)
    assert counts.remaining(charge, NOW) == 0
    later = NOW + timedelta(seconds=30)
    assert not counts.is_exceeded(charge, later)
    assert counts.remaining(charge, later) == 1
