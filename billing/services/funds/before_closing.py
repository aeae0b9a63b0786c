"""Before a month of a tenant that pays beforehand is closed: what was used in it without money is ours to pay.

Looks are made each five minutes; where they were not, a lease may have run on across the end of its month, and its
invoice would ask for what nobody set aside.
"""

from datetime import datetime

from django.db import transaction

from billing.models import BillingPeriod, RatedCharge
from billing.models.charges import SLICE_SECONDS
from billing.services.funds.looking import look_at
from billing.services.wallets import covering
from billing.services.wallets.covering import PaymentRequired
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases import ending
from tenants.models import Tenant
from tenants.services.quotas import hold_off_new
from tenants.services.walls import as_tenant


def settle(tenant: Tenant, month: BillingPeriod, *, now: datetime) -> None:
    """Bring up what every lease that the month charges has of the wallet; each in a transaction of its own.

    Everything of the month is charged already. What runs and has no money for the next minutes is ended.
    """
    with as_tenant(tenant.pk):
        charged = RatedCharge.objects.billed_in(month.pk).filter(tenant_id=tenant.pk, meter=SLICE_SECONDS)
        leases = sorted(set(charged.values_list("lease_id", flat=True)))
    for lease_id in leases:
        with as_tenant(tenant.pk):
            _settle(lease_id, tenant, now)


def _settle(lease_id: str, tenant: Tenant, now: datetime) -> None:
    hold_off_new(tenant.pk)
    rows = Lease.objects.select_for_update(of=("self",)).select_related("project__tenant", "offering")
    lease = rows.get(pk=lease_id)
    look = look_at(lease, now=now)
    if lease.state == LeaseState.ACTIVE:
        try:
            with transaction.atomic():
                covering.extend(look, now=now)
            return
        except PaymentRequired:
            ending.release(lease, reason=EndReason.UNPAID, now=now)
            look = look_at(lease, now=now)
    covering.close(look, now=now)
