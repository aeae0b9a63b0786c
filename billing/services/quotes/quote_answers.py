"""Quote a request: feasibility, start, price and alternatives. Nothing is written."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from billing.services.catalogue import price_list
from billing.services.catalogue.price_list import OfferingPrice
from billing.services.funds.costs import lease_maximums
from billing.services.quotes import quote_signatures
from billing.services.quotes.alternatives import OfferingAlternative, find_alternatives
from billing.services.quotes.quote_signatures import QuoteOffer
from broker.domain.placement.slots import Slot
from broker.models import Lease, Offering
from broker.services.leases import lease_requests
from broker.services.leases.lease_requests import LeaseRequest, build_lease
from broker.services.placement import available_capacity
from broker.services.placement.placement_gpus import PlacementGpu
from broker.services.queue import open_capacity, reclaim_risks, spot_reclaims
from broker.services.queue.reclaim_risks import SpotConditions
from broker.services.quotas import block_new_quotas
from broker.services.volumes import volume_mounts
from tenants.models import Project
from tenants.services import quotas
from tenants.services.actors import Actor
from tenants.services.authentication import require_not_suspended
from tenants.services.errors import ProblemError
from tenants.services.quotas import RemainingQuota

NOW, WHEN_FREE, NEVER = "now", "when_free", "never"
STARTS = (NOW, WHEN_FREE, NEVER)
QUOTE_GATE = "billing.services.quotes.burn_rate_gate.gate"  # the gate that redeems quotes


@dataclass(frozen=True, slots=True)
class QuotedSlot:
    """A slot and the GPU it is on."""

    slot: Slot
    gpu: PlacementGpu


@dataclass(frozen=True, slots=True)
class QuoteAnswer:
    """Answer to a quote request: what would happen if it were submitted now.

    No capacity is taken; `offer` binds us to its price.
    """

    offering: Offering
    quantity: int
    duration_s: int
    currency: str
    price: OfferingPrice | None
    nano_per_hour: int  # of all units together
    at_most_minor: int
    starts: str  # now, when_free or never, by capacity
    starts_after_notice_s: int | None  # as spot leases would get notice for it; None where none would
    spot: SpotConditions | None  # of a spot offering
    refusal: ProblemError | None  # what a gate would raise
    places: tuple[QuotedSlot, ...]
    room: tuple[RemainingQuota, ...]
    alternatives: tuple[OfferingAlternative, ...]
    offer: QuoteOffer | None  # None if there is no price to promise

    @property
    def feasible(self) -> bool:
        return self.refusal is None and self.starts != NEVER


def answer_quote(wanted: LeaseRequest, *, project: Project, actor: Actor, now: datetime) -> QuoteAnswer:
    """Check and price a request; raises Refused only if it cannot be answered."""
    lease = build_lease(wanted, project=project, actor=actor, now=now)
    offering, currency = lease.offering, project.tenant.currency
    rooms = quotas.remaining_quotas([project], now=now)[project.pk]
    found = price_list.prices_at(now, currency=currency, offerings=[offering.pk], tenant=project.tenant_id)
    price = found.get(offering.pk)
    refusal = _run_gates(lease, now)
    home = volume_mounts.cluster_name_of(lease.volume_id)
    found_slots = open_capacity.preview_open_placement(
        offering, now=now, quantity=lease.quantity, same_node=lease.same_node, topology=lease.topology, cluster=home
    )
    waits_s = None if found_slots else spot_reclaims.preview_notice_s(lease, now=now)
    cost = _maximum_minor(lease, price, currency, now)
    return QuoteAnswer(
        offering=offering,
        quantity=lease.quantity,
        duration_s=lease.max_duration_s,
        currency=currency,
        price=price,
        nano_per_hour=price.nano_per_hour * lease.quantity if price else 0,
        at_most_minor=cost,
        starts=NOW if found_slots else _start_if_busy(lease, home),
        starts_after_notice_s=waits_s,
        spot=reclaim_risks.load_spot_conditions([offering], now=now).get(offering.pk),
        refusal=refusal,
        places=tuple(QuotedSlot(slot, found_slots.gpus[slot.gpu]) for slot in found_slots.slots) if found_slots else (),
        room=tuple(rooms),
        alternatives=find_alternatives(lease, currency=currency, cost=cost, now=now) if price else (),
        offer=offer_price(lease, price, now=now),
    )


def offer_price(lease: Lease, price: OfferingPrice | None, *, now: datetime) -> QuoteOffer | None:
    """Promise the current price to a prospective lease, if a gate honours it."""
    if price is None or QUOTE_GATE not in settings.LEASE_GATES:
        return None
    lasts = lease.max_duration_s
    return quote_signatures.make_offer(
        price, project=lease.project, quantity=lease.quantity, max_duration_s=lasts, now=now
    )


def _run_gates(lease: Lease, now: datetime) -> ProblemError | None:
    """Run every lease gate and roll back what they took.

    None is asked if the tenant is suspended.
    """
    try:
        require_not_suspended(lease.project.tenant)
        with transaction.atomic():
            block_new_quotas(lease.tenant_id)
            lease_requests.run_gates(lease, now=now)
            raise _RollBackGates
    except _RollBackGates:
        return None
    except ProblemError as refusal:
        return refusal


class _RollBackGates(Exception):
    """Rolls back everything that a quote took."""


def _start_if_busy(lease: Lease, home: str) -> str:
    most = available_capacity.max_when_empty(
        lease.offering, quantity=lease.quantity, same_node=lease.same_node, topology=lease.topology, cluster=home
    )
    return WHEN_FREE if most >= lease.quantity else NEVER


def _maximum_minor(lease: Lease, price: OfferingPrice | None, currency: str, now: datetime) -> int:
    if price is None:
        return 0
    return lease_maximums.request_maximum(lease, nano_per_hour=price.nano_per_hour, currency=currency, now=now).minor
