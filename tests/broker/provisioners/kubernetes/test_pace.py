"""How fast a server is asked: a burst, then the agreed pace, and slower for everybody once it complains."""

import pytest

from broker.provisioners.kubernetes import pace
from broker.provisioners.kubernetes.pace import A_SECOND, BURST, RECOVERY_S, SLOWEST, Pace
from broker.provisioners.kubernetes.refusals import Throttled
from tests.broker.provisioners.kubernetes.wire import Say, Serve, refused

FAR = 1e9


class Time:
    """A clock that only moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(pace, "clock", made)
    return made


def took(time: Time, made: Pace, calls: int) -> float:
    began = time.now
    for _ in range(calls):
        made.take(FAR)
    return time.now - began


def test_a_burst_is_free_and_then_the_pace_is_kept(time: Time) -> None:
    made = Pace()
    assert took(time, made, int(BURST)) == 0
    assert took(time, made, 500) == pytest.approx(500 / A_SECOND)


def test_who_complains_is_asked_half_as_fast_and_slowly_faster_again(time: Time) -> None:
    made = Pace()
    made.slow_down(0)
    took(time, made, int(A_SECOND / 2))
    assert took(time, made, 50) == pytest.approx(1, rel=0.1)
    time.now += RECOVERY_S
    took(time, made, int(BURST))
    assert took(time, made, 100) == pytest.approx(1)
    for _ in range(20):
        made.slow_down(0)
    took(time, made, int(SLOWEST))
    assert 0.2 < took(time, made, 1) <= 1 / SLOWEST


def test_a_pause_holds_for_all_calls_and_is_told_to_those_who_cannot_wait(time: Time) -> None:
    made = Pace()
    made.slow_down(30)
    with pytest.raises(Throttled) as refusal:
        made.take(time.now + 8)
    assert refusal.value.again_in_s == pytest.approx(30)
    made.take(FAR)
    assert time.now == pytest.approx(1030)


def test_one_call_that_is_refused_slows_the_next(serve: Serve, quick_time: None) -> None:
    wire = serve(refused(429, "busy", headers={"Retry-After": "300"}), Say())
    with pytest.raises(Throttled):
        wire.api.send("GET", "/version")
    with pytest.raises(Throttled) as refusal:
        wire.api.send("GET", "/version")
    assert refusal.value.again_in_s == pytest.approx(300)
    assert len(wire.asked) == 1
