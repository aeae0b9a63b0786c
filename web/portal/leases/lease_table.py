"""Rows of the lease table: slice, price, cost so far, and end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Prefetch
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.services.catalogue import price_list
from billing.services.catalogue.price_list import OfferingPrice
from billing.services.rating import spend
from billing.services.rating.spend import LeaseCost
from broker.domain.geometry.host_resources import HostResources
from broker.domain.lifecycle.states import LeaseState, PriceClass
from broker.models import Allocation, Lease
from broker.models.leases import LeaseQuerySet
from broker.services.inventory.offering_resources import lease_resources
from broker.services.queue.queue_positions import QueuePosition, load_queue_positions
from web.ui.formatting import format_profile

ENDS_SOON = timedelta(minutes=30)
ENDING_STATES = {LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED}

END_TEXTS = {
    "none": "",
    "by_tenant": gettext_noop("released"),
    "by_operator": gettext_noop("ended by an operator"),
    "expired": gettext_noop("reached its end"),
    "device_lost": gettext_noop("its node or GPU was lost"),
    "provision_timeout": gettext_noop("not ready in time"),
    "spec_refused": gettext_noop("rejected by the cluster"),
}


@dataclass(frozen=True)
class SlicePosition:
    """Position of one slice on its GPU, for the glyph."""

    start: int | None
    size: int
    kind: str


@dataclass(frozen=True)
class LeaseRow:
    """One lease with everything its table row shows."""

    lease: Lease
    currency: str
    now: datetime
    nano_per_hour: int | None  # of all its slices together
    cost: LeaseCost
    queue_position: QueuePosition | None = None
    slice_positions: tuple[SlicePosition, ...] = field(default=())
    quoted_price: OfferingPrice | None = None  # of the quote it redeemed: the most that it pays

    @property
    def most_nano_per_hour(self) -> int | None:
        """Maximum cost of all its slices, at the quoted or current price."""
        return self.quoted_price.nano_per_hour * self.lease.quantity if self.quoted_price else self.nano_per_hour

    @property
    def glyph(self) -> SlicePosition:
        return self.slice_positions[0] if self.slice_positions else SlicePosition(None, 0, "slice-held")

    @property
    def active(self) -> bool:
        return self.lease.state == LeaseState.ACTIVE

    @property
    def charged_until(self) -> datetime:
        """Return the end of the time charged so far.

        That is earlier than now if its cluster is unreachable or its end has been reached.
        """
        at = self.now.replace(microsecond=0)
        return at if not self.active or self.lease.state_since >= at else self.cost.until or self.lease.state_since

    @property
    def accrues_cost(self) -> bool:
        """Return whether its cost is growing at present."""
        if self.nano_per_hour is None:
            return False  # its price ended while it ran; operators see the gap
        return self.active and self.charged_until >= self.now.replace(microsecond=0)

    @property
    def is_changing(self) -> bool:
        """Return whether its state is changing, so that the row polls."""
        return not self.lease.settled and self.lease.state != LeaseState.QUEUED

    @property
    def queued(self) -> bool:
        return self.lease.state == LeaseState.QUEUED

    @property
    def scheduled(self) -> bool:
        """Return whether it is queued and starts later."""
        return self.lease.is_scheduled(self.now)

    @property
    def stopped(self) -> bool:
        return self.lease.state == LeaseState.STOPPED

    @property
    def may_stop(self) -> bool:
        """Return whether it can be stopped: it is active and has a volume."""
        return self.active and self.lease.volume_id is not None

    @property
    def is_ending(self) -> bool:
        return self.lease.state in ENDING_STATES

    @property
    def slice_label(self) -> str:
        offering = self.lease.offering
        name = _("Whole GPU") if offering.isolation == "device" else format_profile(offering.profile)
        return f"{self.lease.quantity} × {name}" if self.lease.quantity > 1 else name

    @property
    def workload_label(self) -> str:
        template = self.lease.workload_template
        return template.label if template else self.lease.workload

    @property
    def variables(self) -> str:
        return ", ".join(sorted(self.lease.env))

    @property
    def model(self) -> str:
        return self.lease.offering.model.partition("-")[0]

    @property
    def remaining_time(self) -> timedelta | None:
        """Return how long until it ends by itself."""
        return self.lease.must_end_at - self.now if self.lease.must_end_at else None

    @property
    def ends_soon(self) -> bool:
        ends_at = self.lease.must_end_at
        return self.active and ends_at is not None and ends_at - self.now <= ENDS_SOON

    @property
    def end_kind(self) -> str:
        """Return whether a notice, the end date or the maximum duration ends it."""
        if self.lease.reclaim_at and self.lease.reclaim_at == self.lease.must_end_at:
            return "notice"
        return "end date" if self.lease.ends_at == self.lease.end_date else "max duration"

    @property
    def age(self) -> timedelta:
        """Return how long it has been in its state."""
        return self.now - (self.lease.active_at if self.active and self.lease.active_at else self.lease.state_since)

    @property
    def percent(self) -> int:
        """Return the progress of its start, as the provisioner reports it."""
        return int(self.lease.progress.get("percent") or 0)

    @property
    def progress_text(self) -> str:
        return f"{self.lease.progress.get('text', 'placed')}, {self.percent} %"

    @property
    def end_text(self) -> str:
        text = END_TEXTS.get(self.lease.end_reason, self.lease.end_reason.replace("_", " "))
        return _(text) if text else ""

    @property
    def requested_by_name(self) -> str:
        return self.lease.requested_by_label.partition("@")[0]

    @property
    def is_spot(self) -> bool:
        return self.lease.offering.price_class == PriceClass.SPOT

    @property
    def price_class(self) -> str:
        return self.lease.offering.price_class.replace("_", "-")

    @property
    def memory_gb(self) -> int:
        """Return the memory of its GPUs; zero without one."""
        return self.lease.offering.memory_gb * self.lease.quantity

    @property
    def resources(self) -> HostResources:
        """Return the CPU, memory and scratch of each of its slices."""
        return lease_resources(self.lease)

    @property
    def units(self) -> str:
        """Return the quota units it takes, in as few digits as possible."""
        whole, rest = divmod(self.lease.offering.milli_units * self.lease.quantity, 1000)
        return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)

    @property
    def unit_plural(self) -> int:
        """Return the whole number that chooses between unit and units: fractions take the plural."""
        milli = self.lease.offering.milli_units * self.lease.quantity
        return 1 if milli == 1000 else max(2, milli // 1000)

    @property
    def release_verb(self) -> str:
        words = {
            "queued": _("Cancel request"),
            "active": _("Release and stop charging"),
            "stopped": _("Release permanently"),
        }
        return words.get(self.lease.state, "Release")


def prefetch_for_rows(leases: LeaseQuerySet) -> LeaseQuerySet:
    """Prefetch what lease rows show, in two queries for any number of leases."""
    held = Allocation.objects.order_by("held_at", "gpu_id", "placement")
    return leases.select_related("offering__gpu_model", "project", "volume").prefetch_related(
        Prefetch("allocations", queryset=held)
    )


def lease_rows(leases: Iterable[Lease], *, currency: str, now: datetime) -> list[LeaseRow]:
    """Return table rows for prefetched leases.

    Three more queries for any number of leases, four where one redeemed a quote.
    """
    listed = list(leases)
    offerings = {lease.offering_id for lease in listed}
    tenant = listed[0].tenant_id if listed else ""
    price = price_list.prices_at(now, currency=currency, offerings=offerings, tenant=tenant)
    quoted_prices = price_list.quoted_prices(listed)
    ran = [lease.pk for lease in listed if lease.ever_active]
    cost = spend.costs_of(ran, now=now) if ran else {}
    waiting = [lease for lease in listed if lease.state == LeaseState.QUEUED and not lease.is_scheduled(now)]
    queue_positions = load_queue_positions(waiting)
    return [
        LeaseRow(
            lease=lease,
            currency=currency,
            now=now,
            nano_per_hour=p.nano_per_hour * lease.quantity
            if (p := price_list.price_paid(quoted_prices.get(lease.pk), price.get(lease.offering_id)))
            else None,
            quoted_price=quoted_prices.get(lease.pk),
            cost=cost.get(lease.pk, LeaseCost.nothing(currency)),
            queue_position=queue_positions.get(lease.pk),
            slice_positions=slice_positions(lease, lease.allocations.all()),
        )
        for lease in listed
    ]


def slice_positions(lease: Lease, allocations: Iterable[Allocation]) -> tuple[SlicePosition, ...]:
    """Return the slices of the lease's current generation; released ones get the kind `slice-ended`."""
    return tuple(
        SlicePosition(a.placement.lower, a.placement.upper - a.placement.lower, slice_kind(lease, a))
        for a in allocations
        if a.generation == lease.generation
    )


def slice_kind(lease: Lease, allocation: Allocation) -> str:
    if allocation.released_at is not None:
        return "slice-ended"
    return "slice-held" if lease.state == LeaseState.ACTIVE else "slice-coming"


def burn_rate_of(shown: Sequence[LeaseRow]) -> int:
    """Return the burn rate of the active leases, in 10⁻⁹ currency units per hour."""
    return sum(row.nano_per_hour or 0 for row in shown if row.active)
