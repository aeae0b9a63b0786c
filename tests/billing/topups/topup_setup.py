"""Setup and processing of top-ups."""

from datetime import datetime

from billing.gateways.simulated import GatewayFault
from billing.models import SimulatedCharge, TopUp
from billing.services.ledger import ledger_balances
from billing.services.payments.topups import topup_collection, topup_creation
from tenants.services.rls import tenant_scope
from tests.billing.gateways.faults import inject_faults
from tests.simulation import NOW, TenantContext


def request_topup(owner: TenantContext, cents: int, *, now: datetime = NOW) -> TopUp:
    with tenant_scope(owner.tenant.pk):
        return topup_creation.open_topup(owner.tenant, minor=cents, actor=owner.actor, now=now)


def process_topup(topup: TopUp, *, now: datetime = NOW) -> TopUp:
    """Let a worker process a top-up, and return its new state."""
    topup_collection.TOPUPS.collect(topup.pk, topup.tenant_id, now=now)
    return reload_topup(topup)


def reload_topup(topup: TopUp) -> TopUp:
    with tenant_scope(topup.tenant_id):
        return TopUp.objects.get(pk=topup.pk)


def topups_of(owner: TenantContext) -> list[TopUp]:
    with tenant_scope(owner.tenant.pk):
        return list(TopUp.objects.order_by("opened_at", "pk"))


def wallet_balance(owner: TenantContext) -> int:
    with tenant_scope(owner.tenant.pk):
        return ledger_balances.available_balance(owner.tenant.pk, owner.tenant.currency)


def charged_topups(owner: TenantContext) -> list[int]:
    """Return the charged amounts of the gateway."""
    charges = SimulatedCharge.objects.filter(payer=owner.tenant.pk, declined=False)
    return list(charges.values_list("minor", flat=True))


def fail_next_topups(owner: TenantContext, *ills: GatewayFault) -> None:
    inject_faults(owner.tenant.pk, *ills)
