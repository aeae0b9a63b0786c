"""Write off usage without money before a prepaid tenant's month is closed.

Holds are checked every few minutes. If a check was missed, a lease may have run past the end of
its month without money, and the invoice would ask for an amount that nobody reserved.
"""

from datetime import datetime

from django.db import transaction

from billing.models import BillingPeriod, RatedCharge
from billing.models.charges import SLICE_SECONDS
from billing.services.funds.costs.hold_context import open_lease_hold
from billing.services.funds.wallets import prepaid_holds
from billing.services.funds.wallets.prepaid_holds import PaymentRequired
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases.lifecycle import termination
from broker.services.quotas import block_new_quotas
from tenants.models import Tenant
from tenants.services.rls import tenant_scope


def settle_month_holds(tenant: Tenant, month: BillingPeriod, *, now: datetime) -> None:
    """Update the wallet holds of all leases charged in the month, one transaction each.

    Everything of the month is already charged. A running lease without money for the next minutes is
    ended.
    """
    with tenant_scope(tenant.pk):
        charged = RatedCharge.objects.billed_in(month.pk).filter(tenant_id=tenant.pk, meter=SLICE_SECONDS)
        leases = sorted(set(charged.values_list("lease_id", flat=True)))
    for lease_id in leases:
        with tenant_scope(tenant.pk):
            _settle_lease(lease_id, tenant, now)


def _settle_lease(lease_id: str, tenant: Tenant, now: datetime) -> None:
    block_new_quotas(tenant.pk)
    rows = Lease.objects.select_for_update(of=("self",)).select_related("project__tenant", "offering")
    lease = rows.get(pk=lease_id)
    context = open_lease_hold(lease, now=now)
    if lease.state == LeaseState.ACTIVE:
        try:
            with transaction.atomic():
                prepaid_holds.extend_cover(context, now=now)
            return
        except PaymentRequired:
            termination.release_lease(lease, reason=EndReason.UNPAID, now=now)
            context = open_lease_hold(lease, now=now)
    prepaid_holds.settle_hold(context, now=now)
