"""A lease is idle only if activity, memory and sessions all say so for the whole window."""

from broker.domain.telemetry.idle import Activity, IdleLimits, MinuteUse, judge_activity

LIMITS = IdleLimits()
QUIET = MinuteUse(3, 40_000)


def judged(*slices: list[MinuteUse], has_session: bool = False) -> Activity:
    return judge_activity(slices, has_session=has_session, limits=LIMITS).activity


def test_an_hour_without_activity_is_idle() -> None:
    assert judged([QUIET] * 60) is Activity.IDLE


def test_short_bursts_below_five_in_a_hundred_minutes_do_not_count() -> None:
    assert judged([MinuteUse(900, 40_000)] * 3 + [QUIET] * 57) is Activity.IDLE
    assert judged([MinuteUse(900, 40_000)] * 4 + [QUIET] * 56) is Activity.ACTIVE


def test_growing_memory_is_activity() -> None:
    assert judged([MinuteUse(0, 40_000 + each * 10) for each in range(60)]) is Activity.ACTIVE


def test_a_session_is_activity() -> None:
    assert judged([QUIET] * 60, has_session=True) is Activity.ACTIVE


def test_a_gap_is_unknown_and_not_idle() -> None:
    assert judged([QUIET] * 56) is Activity.UNKNOWN
    assert judged([QUIET] * 30 + [MinuteUse(None, None, 0)] * 30) is Activity.UNKNOWN
    assert judged([]) is Activity.UNKNOWN
    assert judged() is Activity.UNKNOWN


def test_activity_in_the_known_part_is_activity() -> None:
    assert judged([MinuteUse(500, 40_000)] * 10) is Activity.ACTIVE


def test_a_lease_of_several_gpus_is_idle_only_if_all_are() -> None:
    assert judged([QUIET] * 60, [MinuteUse(700, 9)] * 60) is Activity.ACTIVE
    assert judged([QUIET] * 60, []) is Activity.UNKNOWN
    assert judged([QUIET] * 60, [QUIET] * 60) is Activity.IDLE
