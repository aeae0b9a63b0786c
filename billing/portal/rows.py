"""Leases as rows of a table: the slice, the price, the cost so far, and what ends it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Prefetch

from billing.services import prices, spend
from billing.services.prices import Price
from billing.services.spend import Cost
from broker.domain.states import LeaseState
from broker.domain.workloads import TEMPLATES
from broker.models import Allocation, Lease
from broker.models.leases import LeaseQuerySet
from broker.services.leases.standing import Position, positions

SOON = timedelta(minutes=30)
ENDING = {LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED}

ENDED = {
    "none": "",
    "by_tenant": "released",
    "by_operator": "ended by an operator",
    "expired": "reached its end",
    "device_lost": "its card was lost",
    "provision_timeout": "not ready in time",
    "spec_refused": "refused by the cluster",
}


@dataclass(frozen=True)
class Seat:
    """Where one slice lies on its card, for the glyph."""

    start: int | None
    size: int
    kind: str


@dataclass(frozen=True)
class Row:
    """One lease with all that its row shows."""

    lease: Lease
    currency: str
    now: datetime
    nano_per_hour: int | None  # of all its slices together
    cost: Cost
    position: Position | None = None
    seats: tuple[Seat, ...] = field(default=())
    promised: Price | None = None  # by the quote that it cites, whatever the list says

    @property
    def glyph(self) -> Seat:
        return self.seats[0] if self.seats else Seat(None, 0, "u")

    @property
    def active(self) -> bool:
        return self.lease.state == LeaseState.ACTIVE

    @property
    def charged_until(self) -> datetime:
        """Until when it would be charged if it ended now: its cluster may be silent, or its end reached."""
        at = self.now.replace(microsecond=0)
        return at if not self.active or self.lease.at >= at else self.cost.until or self.lease.at

    @property
    def ticks(self) -> bool:
        """Whether what it costs grows while one looks."""
        if self.nano_per_hour is None:
            return False  # its price ended while it ran: an operator is told, nobody guesses
        return self.active and self.charged_until >= self.now.replace(microsecond=0)

    @property
    def live(self) -> bool:
        """Whether something is under way, so that the row asks again soon."""
        return not self.lease.settled and self.lease.state != LeaseState.QUEUED

    @property
    def queued(self) -> bool:
        return self.lease.state == LeaseState.QUEUED

    @property
    def stopped(self) -> bool:
        return self.lease.state == LeaseState.STOPPED

    @property
    def may_stop(self) -> bool:
        """Whether something would be left of it: only what lies on its volume is."""
        return self.active and self.lease.volume_id is not None

    @property
    def over(self) -> bool:
        return self.lease.state in ENDING

    @property
    def shape(self) -> str:
        offering = self.lease.offering
        name = "Whole card" if offering.isolation == "device" else offering.profile
        return f"{self.lease.quantity} × {name}" if self.lease.quantity > 1 else name

    @property
    def runs(self) -> str:
        template = TEMPLATES.get(self.lease.workload)
        return template.label if template else self.lease.workload

    @property
    def variables(self) -> str:
        return ", ".join(sorted(self.lease.env))

    @property
    def model(self) -> str:
        return self.lease.offering.model.partition("-")[0]

    @property
    def left(self) -> timedelta | None:
        """How long until it ends by itself."""
        return self.lease.ends_at - self.now if self.lease.ends_at else None

    @property
    def soon(self) -> bool:
        return self.active and self.lease.ends_at is not None and self.lease.ends_at - self.now <= SOON

    @property
    def limit(self) -> str:
        """What it is that will end it: its duration, or a date somebody chose."""
        return "end date" if self.lease.ends_at == self.lease.end_date else "max duration"

    @property
    def age(self) -> timedelta:
        """How long it has been in the state it is in."""
        return self.now - (self.lease.active_at if self.active and self.lease.active_at else self.lease.at)

    @property
    def percent(self) -> int:
        """How far its start has come, as the provisioner tells."""
        return int(self.lease.progress.get("percent") or 0)

    @property
    def progress_words(self) -> str:
        return f"{self.lease.progress.get('text', 'placed')}, {self.percent} %"

    @property
    def end_words(self) -> str:
        return ENDED.get(self.lease.end_reason, self.lease.end_reason.replace("_", " "))

    @property
    def asked_by(self) -> str:
        return self.lease.requested_by_label.partition("@")[0]

    @property
    def price_class(self) -> str:
        return self.lease.offering.price_class.replace("_", "-")

    @property
    def memory_gb(self) -> int:
        return self.lease.offering.memory_gb * self.lease.quantity

    @property
    def units(self) -> str:
        """What it counts against a quota of units, in as few digits as that takes."""
        whole, rest = divmod(self.lease.offering.milli_units * self.lease.quantity, 1000)
        return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)

    @property
    def release_verb(self) -> str:
        words = {
            "queued": "Leave the queue",
            "active": "Release and stop charging",
            "stopped": "Release for good",
        }
        return words.get(self.lease.state, "Release")


def loaded(leases: LeaseQuerySet) -> LeaseQuerySet:
    """Load with the leases what their rows show, in two queries however many they are."""
    held = Allocation.objects.order_by("held_at", "gpu_id", "placement")
    return leases.select_related("offering__gpu_model", "project", "volume").prefetch_related(
        Prefetch("allocations", queryset=held)
    )


def rows(leases: Iterable[Lease], *, currency: str, now: datetime) -> list[Row]:
    """Turn loaded leases into rows: three queries more, four where one cites a quote, whatever their number."""
    listed = list(leases)
    offerings = {lease.offering_id for lease in listed}
    tenant = listed[0].tenant_id if listed else ""
    price = prices.at(now, currency=currency, offerings=offerings, tenant=tenant)
    promised = prices.promised(listed)
    ran = [lease.pk for lease in listed if lease.ever_active]
    cost = spend.costs(ran, now=now) if ran else {}
    places = positions([lease for lease in listed if lease.state == LeaseState.QUEUED])
    return [
        Row(
            lease=lease,
            currency=currency,
            now=now,
            nano_per_hour=p.nano_per_hour * lease.quantity
            if (p := promised.get(lease.pk) or price.get(lease.offering_id))
            else None,
            promised=promised.get(lease.pk),
            cost=cost.get(lease.pk, Cost.nothing(currency)),
            position=places.get(lease.pk),
            seats=seats_of(lease, lease.allocations.all()),
        )
        for lease in listed
    ]


def seats_of(lease: Lease, allocations: Iterable[Allocation]) -> tuple[Seat, ...]:
    """Return the slices of the lease's present generation, given back ones pale."""
    return tuple(
        Seat(a.placement.lower, a.placement.upper - a.placement.lower, kind_of(lease, a))
        for a in allocations
        if a.generation == lease.generation
    )


def kind_of(lease: Lease, allocation: Allocation) -> str:
    if allocation.released_at is not None:
        return "z"
    return "u" if lease.state == LeaseState.ACTIVE else "w"


def burning(shown: Sequence[Row]) -> int:
    """Return what the active ones among these rows cost per hour together, in 10⁻⁹ units."""
    return sum(row.nano_per_hour or 0 for row in shown if row.active)
