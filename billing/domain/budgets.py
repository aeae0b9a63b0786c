"""Budget thresholds: percentages of a limit at which people are alerted or leases stopped."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

MAX_PERCENT = 1000
MAX_THRESHOLDS = 10  # thresholds of one kind
MAX_GRACE_MINUTES = 7 * 24 * 60  # minutes
DEFAULT_THRESHOLDS = (50, 80, 100)
DEFAULT_FORECAST_THRESHOLDS = (80, 100)


class BudgetMeasure(StrEnum):
    SPENT = "spent"
    FORECAST = "forecast"  # spent, plus running leases until their own end or the month's


class StopScope(StrEnum):
    IDLE = "idle"
    ALL = "all"


class InvalidBudgetTerms(ValueError):
    """Invalid budget terms; `field` names the one at fault."""

    def __init__(self, field: str, words: str) -> None:
        super().__init__(words)
        self.field = field


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """Alert thresholds of a budget and what happens at which percentage; None means never."""

    thresholds: tuple[int, ...] = DEFAULT_THRESHOLDS
    forecast_thresholds: tuple[int, ...] = DEFAULT_FORECAST_THRESHOLDS
    stop_new_at: int | None = 100  # None: a soft budget, which does not block new leases
    stop_idle_at: int | None = None
    stop_all_at: int | None = None
    grace_minutes: int = 60  # between the e-mail and a stop

    def __post_init__(self) -> None:
        for field in ("thresholds", "forecast_thresholds"):
            shares = getattr(self, field)
            if len(shares) > MAX_THRESHOLDS:
                raise InvalidBudgetTerms(field, f"At most {MAX_THRESHOLDS} alert thresholds are allowed.")
            if list(shares) != sorted(set(shares)):
                raise InvalidBudgetTerms(field, "Alert thresholds must be in ascending order without duplicates.")
            for share in shares:
                _check_percent(field, share)
        for field in ("stop_new_at", "stop_idle_at", "stop_all_at"):
            if (share := getattr(self, field)) is not None:
                _check_percent(field, share)
        if not 0 <= self.grace_minutes <= MAX_GRACE_MINUTES:
            raise InvalidBudgetTerms(
                "grace_minutes", f"The grace period must be 0 to {MAX_GRACE_MINUTES} minutes (one week)."
            )

    def stops_at(self, what: StopScope) -> int | None:
        """Return the percentage at which leases of this scope are stopped."""
        return self.stop_all_at if what is StopScope.ALL else self.stop_idle_at

    def alert_thresholds(self, measure: BudgetMeasure) -> tuple[int, ...]:
        return self.thresholds if measure is BudgetMeasure.SPENT else self.forecast_thresholds


def has_reached(minor: int, limit: int, percent: int) -> bool:
    """Return whether an amount has reached a percentage of a limit; zero never has."""
    return minor > 0 and minor * 100 >= limit * percent


def start_ceiling(limit: int, stop_new_at: int | None) -> int | None:
    """Return the amount up to which new leases may start, rounded down; None if unlimited."""
    return None if stop_new_at is None else limit * stop_new_at // 100


def parse_percents(text: str, field: str) -> tuple[int, ...]:
    """Parse percentages such as `50, 80, 100` in any order; raise InvalidBudgetTerms if malformed.

    An empty text is an empty list.
    """
    words = [word.strip().removesuffix("%").strip() for word in text.replace(";", ",").split(",")]
    return tuple(sorted({parse_percent(word, field) for word in words if word}))


def parse_percent(word: str, field: str) -> int:
    """Parse one percentage such as `80`; raise InvalidBudgetTerms if malformed."""
    plain = word.strip().removesuffix("%").strip()
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 6):
        raise InvalidBudgetTerms(field, f"{word.strip()[:20]!r} is not a whole percentage.")
    return int(plain)


def format_percents(of: Iterable[int]) -> str:
    """Write percentages as they are typed."""
    return ", ".join(map(str, of))


def _check_percent(field: str, share: int) -> None:
    if not 1 <= share <= MAX_PERCENT:
        raise InvalidBudgetTerms(field, f"A threshold must be a whole percentage from 1 to {MAX_PERCENT}, not {share}.")
