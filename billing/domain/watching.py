"""At which shares of a budget people are told, and at which something is done: whole percents of its limit."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

HIGHEST_PERCENT = 1000
MOST = 10  # shares of one kind
LONGEST_GRACE = 7 * 24 * 60  # minutes
USUAL = (50, 80, 100)
USUAL_FORECAST = (80, 100)


class Measure(StrEnum):
    SPENT = "spent"
    FORECAST = "forecast"  # what is spent, and what runs now until its own end or the month's


class StopOf(StrEnum):
    IDLE = "idle"
    ALL = "all"


class NotTerms(ValueError):
    """Terms that no budget can have; `field` names which of them."""

    def __init__(self, field: str, words: str) -> None:
        super().__init__(words)
        self.field = field


@dataclass(frozen=True, slots=True)
class Terms:
    """When people are told of a budget, and what happens at which share of it; None where it never does."""

    thresholds: tuple[int, ...] = USUAL
    forecast_thresholds: tuple[int, ...] = USUAL_FORECAST
    stop_new_at: int | None = 100  # None: a soft budget, beyond whose limit leases begin all the same
    stop_idle_at: int | None = None
    stop_all_at: int | None = None
    grace_minutes: int = 60  # between the letter and a stop

    def __post_init__(self) -> None:
        for field in ("thresholds", "forecast_thresholds"):
            shares = getattr(self, field)
            if len(shares) > MOST:
                raise NotTerms(field, f"At most {MOST} shares are told of.")
            if list(shares) != sorted(set(shares)):
                raise NotTerms(field, "Shares are told of in their order, each once.")
            for share in shares:
                _check(field, share)
        for field in ("stop_new_at", "stop_idle_at", "stop_all_at"):
            if (share := getattr(self, field)) is not None:
                _check(field, share)
        if not 0 <= self.grace_minutes <= LONGEST_GRACE:
            raise NotTerms("grace_minutes", f"A grace lasts from 0 to {LONGEST_GRACE} minutes, a week.")

    def stops_at(self, what: StopOf) -> int | None:
        """Return the share at which so much is stopped."""
        return self.stop_all_at if what is StopOf.ALL else self.stop_idle_at

    def told_of(self, measure: Measure) -> tuple[int, ...]:
        return self.thresholds if measure is Measure.SPENT else self.forecast_thresholds


def reached(minor: int, limit: int, percent: int) -> bool:
    """Tell whether an amount has come to a share of a limit; nothing spent has reached nothing."""
    return minor > 0 and minor * 100 >= limit * percent


def ceiling(limit: int, stop_new_at: int | None) -> int | None:
    """Return up to which amount leases begin, rounded down; None where a limit stops none."""
    return None if stop_new_at is None else limit * stop_new_at // 100


def shares(text: str, field: str) -> tuple[int, ...]:
    """Read shares such as `50, 80, 100`, in any order; raise NotTerms for what is none. Nothing is no share."""
    words = [word.strip().removesuffix("%").strip() for word in text.replace(";", ",").split(",")]
    return tuple(sorted({share(word, field) for word in words if word}))


def share(word: str, field: str) -> int:
    """Read one share such as `80`; raise NotTerms for what is none."""
    plain = word.strip().removesuffix("%").strip()
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 6):
        raise NotTerms(field, f"{word.strip()[:20]!r} is no whole percent.")
    return int(plain)


def written(of: Iterable[int]) -> str:
    """Write shares as they are typed."""
    return ", ".join(map(str, of))


def _check(field: str, share: int) -> None:
    if not 1 <= share <= HIGHEST_PERCENT:
        raise NotTerms(field, f"A share is a whole percent from 1 to {HIGHEST_PERCENT}, not {share}.")
