"""Burst, rate and slowdown of API requests."""

import pytest

from broker.provisioners.kubernetes.client import rate_limit
from broker.provisioners.kubernetes.client.api_errors import ApiThrottled
from broker.provisioners.kubernetes.client.rate_limit import (
    BURST,
    CALLS_PER_SECOND,
    MIN_CALLS_PER_SECOND,
    RECOVERY_S,
    RateLimiter,
)
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, StartServer, error_status

FAR = 1e9


class Time:
    """A clock that only sleeping advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(rate_limit, "clock", made)
    return made


def elapsed(time: Time, made: RateLimiter, calls: int) -> float:
    began = time.now
    for _ in range(calls):
        made.take(FAR)
    return time.now - began


def test_calls_after_a_free_burst_keep_the_rate(time: Time) -> None:
    made = RateLimiter()
    assert elapsed(time, made, int(BURST)) == 0
    assert elapsed(time, made, 500) == pytest.approx(500 / CALLS_PER_SECOND)


def test_a_throttled_call_halves_the_rate_which_recovers_slowly(time: Time) -> None:
    made = RateLimiter()
    made.slow_down(0)
    elapsed(time, made, int(CALLS_PER_SECOND / 2))
    assert elapsed(time, made, 50) == pytest.approx(1, rel=0.1)
    time.now += RECOVERY_S
    elapsed(time, made, int(BURST))
    assert elapsed(time, made, 100) == pytest.approx(1)
    for _ in range(20):
        made.slow_down(0)
    elapsed(time, made, int(MIN_CALLS_PER_SECOND))
    assert 0.2 < elapsed(time, made, 1) <= 1 / MIN_CALLS_PER_SECOND


def test_a_pause_delays_all_calls_and_refuses_those_that_cannot_wait(time: Time) -> None:
    made = RateLimiter()
    made.slow_down(30)
    with pytest.raises(ApiThrottled) as refusal:
        made.take(time.now + 8)
    assert refusal.value.again_in_s == pytest.approx(30)
    made.take(FAR)
    assert time.now == pytest.approx(1030)


def test_a_throttled_call_blocks_the_next_until_its_retry_after(serve: StartServer, simulated_clock: None) -> None:
    wire = serve(error_status(429, "busy", headers={"Retry-After": "300"}), ScriptedAnswer())
    with pytest.raises(ApiThrottled):
        wire.api.send("GET", "/version")
    with pytest.raises(ApiThrottled) as refusal:
        wire.api.send("GET", "/version")
    assert refusal.value.again_in_s == pytest.approx(300)
    assert len(wire.requests) == 1
