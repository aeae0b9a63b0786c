"""Terms of spot leases: notice and minimum runtime, and the risk of being reclaimed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from broker.domain.lifecycle.states import PriceClass

RISK_WINDOW = timedelta(days=30)
# Leases of these classes reclaim spot leases; spot never reclaims spot.
RECLAIMING_CLASSES = frozenset({PriceClass.ON_DEMAND, PriceClass.RESERVED})


class SpotReclaimState(StrEnum):
    """State of the notices given for one waiting lease."""

    NOTICED = "noticed"  # its spot leases run until the end of the notice
    DONE = "done"  # the waiting lease was placed
    WITHDRAWN = "withdrawn"  # it no longer waits, or the slices cannot be had any more


class ReclaimNoticeState(StrEnum):
    """State of the notice given to one spot lease."""

    GIVEN = "given"
    PREEMPTED = "preempted"  # the lease ran until the end of the notice
    ENDED_EARLY = "ended_early"  # the lease ended or stopped during the notice
    WITHDRAWN = "withdrawn"  # the lease keeps running


@dataclass(frozen=True, slots=True)
class SpotTerms:
    """What is promised to a spot lease when it is requested, in seconds."""

    notice_s: int  # between the notice and the end
    min_runtime_s: int  # no notice before it was active for this long

    def may_get_notice(self, active_at: datetime, now: datetime) -> bool:
        """Return whether a lease active since then has had its minimum runtime."""
        return now >= active_at + timedelta(seconds=self.min_runtime_s)


@dataclass(frozen=True, slots=True)
class ReclaimRisk:
    """Recent spot leases of a pool, and how many were preempted."""

    leases: int
    preempted: int

    def __str__(self) -> str:
        if not self.leases:
            return f"No spot lease ran here in the last {RISK_WINDOW.days} days."
        leases = "spot lease" if self.leases == 1 else "spot leases"
        were = "was" if self.preempted == 1 else "were"
        return f"{self.preempted} of {self.leases} {leases} {were} preempted in the last {RISK_WINDOW.days} days."
