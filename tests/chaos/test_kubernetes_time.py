"""Moments of a cluster with a delayed clock map to ours."""

from collections import deque
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from tests.chaos import kubernetes_time
from tests.chaos.kubernetes_time import Jumps, Later, translated

HOUR = timedelta(hours=1)


def test_only_timestamps_of_the_cluster_are_shifted() -> None:
    ours = b'"x/paid-until":"2026-11-21T12:00:00Z"'
    said = b'{"a":"2026-11-21T23:30:00Z","b":"2026-11-21T10:00:00.123456Z","c":"g1-2026",' + ours + b"}"
    moved = translated(said, HOUR)
    assert moved == said.replace(b"21T23:30", b"22T00:30").replace(b"T10:00", b"T11:00")
    assert translated(moved, -HOUR) == said


def test_times_before_within_and_after_a_jump_map_to_real_time() -> None:
    jumps, before = Jumps(), datetime.now(UTC)
    jumps.jump(HOUR)
    assert jumps.real(before) == before
    within = jumps.real(before + timedelta(minutes=30))
    assert timedelta() <= within - before < timedelta(seconds=5)
    after = jumps.now
    assert after - before >= HOUR
    assert abs(jumps.real(after) - datetime.now(UTC)) < timedelta(seconds=5)
    assert jumps.latest(datetime.now(UTC)) == within
    assert jumps.latest(before) < before - HOUR
    jumps.jump(HOUR)
    assert jumps.real(after) == after - HOUR


def test_an_untriggered_fault_expires_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    way, moments = Later.__new__(Later), iter((0.0, 4.0, 6.0))
    way.faults, way._planned = [], deque()
    monkeypatch.setattr(kubernetes_time, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    planned = [way.fails(".*", 429) for _ in range(3)]
    assert [fault.times for fault in planned] == [0, 1, 1]
