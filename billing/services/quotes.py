"""May I have this, when, at what price: a request judged as it would be, and nothing is written."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from billing.domain.pricing import at_most
from billing.services import prices, sealing
from billing.services.alternatives import Alternative, instead
from billing.services.prices import Price
from billing.services.sealing import Offer
from broker.domain.placement.seats import Seat
from broker.models import Lease, Offering
from broker.services import capacity, gates
from broker.services.leases import openings
from broker.services.leases.request import Wanted, build
from broker.services.placement.cards import Card
from broker.services.volumes import mounting
from tenants.models import Project
from tenants.services import quotas
from tenants.services.actors import Actor
from tenants.services.permissions import not_suspended
from tenants.services.quotas import Room
from tenants.services.refusals import Refused

NOW, WHEN_FREE, NEVER = "now", "when_free", "never"
STARTS = (NOW, WHEN_FREE, NEVER)
KEEPER = "billing.services.burn.gate"  # the gate that lets a lease have the price it was promised


@dataclass(frozen=True, slots=True)
class Place:
    """A seat and the card it is on."""

    seat: Seat
    card: Card


@dataclass(frozen=True, slots=True)
class Answer:
    """What would happen if the same were asked for in earnest now. It takes nothing: `offer` binds us to its price."""

    offering: Offering
    quantity: int
    duration_s: int
    currency: str
    price: Price | None
    nano_per_hour: int  # of all units together
    at_most_minor: int
    starts: str  # now, when_free or never: what capacity says
    refusal: Refused | None  # what a gate would say
    places: tuple[Place, ...]
    room: tuple[Room, ...]
    alternatives: tuple[Alternative, ...]
    offer: Offer | None  # None where there is no price to promise

    @property
    def feasible(self) -> bool:
        return self.refusal is None and self.starts != NEVER


def quote(wanted: Wanted, *, project: Project, actor: Actor, now: datetime) -> Answer:
    """Judge a request and price it; raises Refused only for what no answer can be given to."""
    lease = build(wanted, project=project, actor=actor, now=now)
    offering, currency = lease.offering, project.tenant.currency
    rooms = quotas.room([project], now=now)[project.pk]
    found = prices.at(now, currency=currency, offerings=[offering.pk], tenant=project.tenant_id)
    price = found.get(offering.pk)
    refusal = _judged(lease, now)
    home = mounting.home_of(lease.volume_id)
    seating = openings.preview(
        offering,
        now=now,
        quantity=lease.quantity,
        same_node=lease.same_node,
        topology=lease.topology,
        cluster=home,
    )
    cost = _at_most(lease, price, currency)
    return Answer(
        offering=offering,
        quantity=lease.quantity,
        duration_s=lease.max_duration_s,
        currency=currency,
        price=price,
        nano_per_hour=price.nano_per_hour * lease.quantity if price else 0,
        at_most_minor=cost,
        starts=NOW if seating else _later(lease, home),
        refusal=refusal,
        places=tuple(Place(seat, seating.cards[seat.gpu]) for seat in seating.seats) if seating else (),
        room=tuple(rooms),
        alternatives=instead(lease, currency=currency, cost=cost, now=now) if price else (),
        offer=offer_for(lease, price, now=now),
    )


def offer_for(lease: Lease, price: Price | None, *, now: datetime) -> Offer | None:
    """Promise the price of this moment to a lease that is not asked for yet, where there is one and a gate keeps it."""
    if price is None or KEEPER not in settings.LEASE_GATES:
        return None
    lasts = lease.max_duration_s
    return sealing.offer(price, project=lease.project, quantity=lease.quantity, max_duration_s=lasts, now=now)


def _judged(lease: Lease, now: datetime) -> Refused | None:
    """Let every gate judge the lease and take back what they took; none is asked for a tenant that is suspended."""
    try:
        not_suspended(lease.project.tenant)
        with transaction.atomic():
            quotas.hold_off_new(lease.tenant_id)
            gates.pass_all(lease, now=now)
            raise _Undo
    except _Undo:
        return None
    except Refused as refusal:
        return refusal


class _Undo(Exception):
    """Nothing of a quote is kept."""


def _later(lease: Lease, home: str) -> str:
    most = capacity.could_ever_fit(
        lease.offering,
        quantity=lease.quantity,
        same_node=lease.same_node,
        topology=lease.topology,
        cluster=home,
    )
    return WHEN_FREE if most >= lease.quantity else NEVER


def _at_most(lease: Lease, price: Price | None, currency: str) -> int:
    if price is None:
        return 0
    return at_most(
        lease.max_duration_s,
        quantity=lease.quantity,
        nano_per_hour=price.nano_per_hour,
        currency=currency,
    )
