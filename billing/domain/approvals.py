"""Limits above which a launch needs approval, and what a launch measures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Approver(StrEnum):
    """Who sets a limit, and approves what exceeds it."""

    TENANT = "tenant"  # its owners
    OPERATOR = "operator"


class Measure(StrEnum):
    """What a limit is in."""

    MONEY = "money"
    GPUS = "gpus"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class LaunchSize:
    """What a launch may come to: maximum cost, GPUs in thousandths, total duration."""

    cost_minor: int
    milli_gpus: int
    duration_s: int

    def amount(self, measure: Measure) -> int:
        return {
            Measure.MONEY: self.cost_minor,
            Measure.GPUS: self.milli_gpus,
            Measure.DURATION: self.duration_s,
        }[measure]


@dataclass(frozen=True, slots=True)
class LaunchLimits:
    """Limits that one approver has set; None is no limit."""

    approver: Approver
    max_minor: int | None
    max_milli_gpus: int | None
    max_duration_s: int | None

    def limit(self, measure: Measure) -> int | None:
        return {
            Measure.MONEY: self.max_minor,
            Measure.GPUS: self.max_milli_gpus,
            Measure.DURATION: self.max_duration_s,
        }[measure]


@dataclass(frozen=True, slots=True)
class Approved:
    """What was approved before, and by whom."""

    size: LaunchSize
    approvers: frozenset[Approver]


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that a launch exceeds."""

    approver: Approver
    measure: Measure
    limit: int


def find_excesses(size: LaunchSize, limits: Iterable[LaunchLimits], approved: Sequence[Approved]) -> list[Excess]:
    """Return the limits that a launch exceeds and that no earlier approval covers."""
    found = []
    for each in limits:
        for measure in Measure:
            limit, amount = each.limit(measure), size.amount(measure)
            if limit is None or amount <= limit:
                continue
            if any(each.approver in one.approvers and amount <= one.size.amount(measure) for one in approved):
                continue
            found.append(Excess(each.approver, measure, limit))
    return found
