"""Increase of counters: resets, wraps and the first reading."""

import pytest

from broker.domain.telemetry.counters import CounterIncrease, counter_increase


@pytest.mark.parametrize(
    ("before", "now", "bits", "increase"),
    [
        (None, 57_585_599, 64, CounterIncrease(0)),
        (100, 100, 64, CounterIncrease(0)),
        (100, 350, 64, CounterIncrease(250)),
        (57_585_599, 900, 64, CounterIncrease(900, restarted=True)),
        (2**32 - 10, 5, 32, CounterIncrease(15, restarted=True)),
        (2**31, 5, 32, CounterIncrease(5, restarted=True)),
        (2**32 - 10, 5, 64, CounterIncrease(5, restarted=True)),
    ],
)
def test_a_counter_grows_across_resets_and_wraps(
    before: int | None, now: int, bits: int, increase: CounterIncrease
) -> None:
    assert counter_increase(before, now, bits=bits) == increase
