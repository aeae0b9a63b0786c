"""Top-ups as tests ask for them, and let workers take them further."""

from datetime import datetime

from billing.gateways.simulated import Ill, suffer
from billing.models import SimulatedCharge, TopUp
from billing.services.ledger import books
from billing.services.topups import collecting, opening
from tenants.services.walls import as_tenant
from tests.world import NOW, Home


def top_up(owner: Home, cents: int, *, now: datetime = NOW) -> TopUp:
    with as_tenant(owner.tenant.pk):
        return opening.top_up(owner.tenant, minor=cents, actor=owner.actor, now=now)


def collect(topup: TopUp, *, now: datetime = NOW) -> TopUp:
    """Let a worker look at it, and return it as it is then."""
    collecting.collect(topup.pk, topup.tenant_id, now=now)
    return fresh(topup)


def fresh(topup: TopUp) -> TopUp:
    with as_tenant(topup.tenant_id):
        return TopUp.objects.get(pk=topup.pk)


def every(owner: Home) -> list[TopUp]:
    with as_tenant(owner.tenant.pk):
        return list(TopUp.objects.order_by("opened_at", "pk"))


def balance(owner: Home) -> int:
    with as_tenant(owner.tenant.pk):
        return books.balance(owner.tenant.pk, owner.tenant.currency)


def taken(owner: Home) -> list[int]:
    """Return what the gateway has taken."""
    charges = SimulatedCharge.objects.filter(payer=owner.tenant.pk, declined=False)
    return list(charges.values_list("minor", flat=True))


def ill(owner: Home, *ills: Ill) -> None:
    suffer(owner.tenant.pk, *ills)
