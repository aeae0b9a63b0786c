"""What a correction is picked from: the runs of a lease, and price versions."""

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from billing.models import PriceVersion
from broker.domain.lifecycle.lease_transitions import BILLABLE_STATES
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Transition
from web.ui.formatting import format_price

MAX_RUNS, MAX_VERSIONS = 20, 300


@dataclass(frozen=True, slots=True)
class LeaseRun:
    """Time that a lease was charged for, without interruption."""

    since: datetime
    until: datetime

    @property
    def since_text(self) -> str:
        return _field_text(self.since)

    @property
    def until_text(self) -> str:
        return _field_text(self.until)

    @property
    def query(self) -> str:
        return urlencode({"run_since": self.since_text, "run_until": self.until_text})


@dataclass(frozen=True, slots=True)
class CorrectableLease:
    """The lease that a correction is for, with its latest runs."""

    lease: Lease
    runs: list[LeaseRun]


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """A price version in a list to choose from."""

    key: str
    label: str


def correctable_lease(pk: str, *, now: datetime) -> CorrectableLease | None:
    """Return a lease with its runs, the latest first.

    None if there is none. Two queries.
    """
    lease = Lease.objects.select_related("tenant", "offering").filter(pk=pk).first() if pk else None
    if lease is None:
        return None
    steps = list(Transition.objects.filter(lease_id=lease.pk).order_by("seq"))
    runs, since = list[LeaseRun](), None
    for step in steps:
        charged = LeaseState(step.after) in BILLABLE_STATES
        if charged and since is None:
            since = step.at
        elif not charged and since is not None:
            runs.append(LeaseRun(since, step.at))
            since = None
    if since is not None:
        runs.append(LeaseRun(since, now.replace(microsecond=0)))
    return CorrectableLease(lease, [run for run in reversed(runs) if run.since < run.until][:MAX_RUNS])


def version_choices() -> list[VersionChoice]:
    """Return price versions by offering, the latest first; one query."""
    rows = PriceVersion.objects.select_related("offering").order_by("offering__label", "offering_id", "-valid")
    return [
        VersionChoice(
            str(each.pk),
            f"{each.offering.label}, {each.offering.price_class.replace('_', '-')}, {each.offering.region}:"
            f" {format_price(each.nano_per_hour, each.currency)}/h from {each.valid.lower:%Y-%m-%d}",
        )
        for each in rows[:MAX_VERSIONS]
    ]


def _field_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
