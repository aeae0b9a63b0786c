"""Our clock and a cluster's that is behind it: each moment has one place in both."""

from datetime import UTC, datetime, timedelta

from tests.chaos.kubernetes_time import Jumps, translated

HOUR = timedelta(hours=1)


def test_every_moment_of_a_document_is_moved_and_nothing_else() -> None:
    ours = b'"x/paid-until":"2026-11-21T12:00:00Z"'
    said = b'{"a":"2026-11-21T23:30:00Z","b":"2026-11-21T10:00:00.123456Z","c":"g1-2026",' + ours + b"}"
    moved = translated(said, HOUR)
    assert moved == said.replace(b"21T23:30", b"22T00:30").replace(b"T10:00", b"T11:00")
    assert translated(moved, -HOUR) == said


def test_what_was_before_within_and_after_a_jump_was_really_when_it_was() -> None:
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
