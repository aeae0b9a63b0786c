"""Whether a lease was idle: by activity, memory and sessions over a window.

Unknown means active. Nobody's lease is stopped because nothing was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MINUTE = 60


class Activity(StrEnum):
    """What a window tells of a lease."""

    ACTIVE = "active"
    IDLE = "idle"
    UNKNOWN = "unknown"  # treated as active


@dataclass(frozen=True, slots=True)
class IdleLimits:
    """Below what a lease counts as idle."""

    window_minutes: int = 60
    engine_active: int = 20  # per mille, for 95 of 100 minutes
    memory_change: int = 10  # per mille of the memory used at the start
    known: int = 950  # per mille of the window that must be known


@dataclass(frozen=True, slots=True)
class MinuteUse:
    """One minute of one of a lease's slices; None is unknown."""

    engine_active: int | None  # mean per mille
    memory_used_mib: int | None
    known_seconds: int = MINUTE


@dataclass(frozen=True, slots=True)
class IdleEvidence:
    """The figures from which idleness was concluded."""

    activity: Activity
    engine_p95: int | None = None
    memory_change: int | None = None  # per mille
    known: int = 0  # per mille of the window


def judge_activity(slices: Sequence[Sequence[MinuteUse]], *, has_session: bool, limits: IdleLimits) -> IdleEvidence:
    """Judge a window of a lease from the minutes of all its slices.

    A lease of several GPUs is idle only if each of them is. `has_session` is an open terminal, SSH session or busy
    notebook.
    """
    judged = [_judge_slice(minutes, limits) for minutes in slices]
    if not judged:
        return IdleEvidence(Activity.UNKNOWN)
    order = [Activity.ACTIVE, Activity.UNKNOWN, Activity.IDLE]
    found = min(judged, key=lambda each: order.index(each.activity))
    if has_session and found.activity is Activity.IDLE:
        return IdleEvidence(Activity.ACTIVE, found.engine_p95, found.memory_change, found.known)
    return found


def _judge_slice(minutes: Sequence[MinuteUse], limits: IdleLimits) -> IdleEvidence:
    usable = [each for each in minutes if each.engine_active is not None and each.memory_used_mib is not None]
    known = sum(each.known_seconds for each in usable) * 1000 // (limits.window_minutes * MINUTE)
    if not usable:
        return IdleEvidence(Activity.UNKNOWN)
    engine = _percentile([each.engine_active or 0 for each in usable], 95)
    used = [each.memory_used_mib or 0 for each in usable]
    change = (max(used) - min(used)) * 1000 // max(used[0], 1)
    if engine >= limits.engine_active or change >= limits.memory_change:
        return IdleEvidence(Activity.ACTIVE, engine, change, known)
    return IdleEvidence(Activity.IDLE if known >= limits.known else Activity.UNKNOWN, engine, change, known)


def _percentile(values: Sequence[int], share: int) -> int:
    """Return the smallest value that at least this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * share // 100) - 1]
