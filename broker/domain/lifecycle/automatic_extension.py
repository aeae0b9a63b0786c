"""Automatic extension of a lease: its steps and its limit."""

from dataclasses import dataclass
from datetime import timedelta

MIN_STEP_S = 600
MIN_EXTENSION_S = 60  # of any extension
LEAD = timedelta(minutes=20)  # before its end a lease is extended, so that a refusal is known 15 minutes before
LEAD_SHARE = 4  # and a short one in the last quarter of its duration


@dataclass(frozen=True, slots=True)
class AutomaticExtension:
    """Seconds added at a time, and the total duration that is never exceeded; zeros: off."""

    by_s: int = 0
    limit_s: int = 0

    @property
    def is_on(self) -> bool:
        return self.by_s > 0

    def next_step_s(self, max_duration_s: int) -> int:
        """Return the seconds of the next extension; zero where none is left."""
        left_s = self.limit_s - max_duration_s
        return min(self.by_s, left_s) if self.is_on and left_s >= MIN_EXTENSION_S else 0


def lead_before_end(max_duration_s: int) -> timedelta:
    """Return how long before its end a lease of this duration is extended."""
    return min(LEAD, timedelta(seconds=max_duration_s // LEAD_SHARE))
