"""How a tenant pays and how it stands, as operators set it; reminders will, too."""

from datetime import datetime

from django.db import transaction
from django.db.models import F, Q

from billing.models import BillingPeriod, Commitment, Minimum, PaymentTerms, TenantStanding, TenantTerms
from billing.models.periods import OPEN
from billing.services.funds.budgets import alone
from billing.services.month_charges import committing, minimums
from billing.services.wallets import beginning
from broker.services.leases import evicting
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_tenant


def of(tenant: Tenant) -> TenantTerms:
    """Return a tenant's terms; unsaved ones, by invoice and well, where nobody set any. One query."""
    return TenantTerms.objects.filter(tenant=tenant).first() or TenantTerms(
        tenant=tenant, since=tenant.created_at
    )


class HasMinimum(Refused):
    code, status, title = "has-minimum", 409, "This tenant has a minimum"


class HasCommitment(Refused):
    code, status, title = "has-commitment", 409, "This tenant has a commitment"


@transaction.atomic
def set_terms(
    tenant: Tenant, *, payment: str, standing: str, why: str, actor: Actor, now: datetime
) -> TenantTerms:
    """Set both, for a reason that the tenant reads. Saying what is so already changes nothing.

    From the next look on what runs is covered by the wallet of a tenant that now pays beforehand, or is ended; nobody
    of the tenant takes money meanwhile.
    """
    if payment not in PaymentTerms.values:
        raise Invalid(
            "payment", "There are no such terms.", fix=f"Choose {' or '.join(PaymentTerms.values)}."
        )
    if standing not in TenantStanding.values:
        raise Invalid(
            "standing", "There is no such standing.", fix=f"Choose {', '.join(TenantStanding.values)}."
        )
    reason = evicting.reason(why)
    with as_tenant(tenant.pk):
        alone(tenant.pk)
        found = of(tenant)
        before = {"payment": found.payment, "standing": found.standing}
        after = {"payment": payment, "standing": standing}
        if before == after:
            return found
        fields = {**after, "why": reason, "since": now}
        if found.pk is None:
            found = TenantTerms.objects.create(tenant=tenant, **fields)
        else:
            TenantTerms.objects.filter(pk=found.pk).update(**fields, version=F("version") + 1)
            found.refresh_from_db()
        if payment == PaymentTerms.PREPAID and payment != before["payment"]:
            _check_owed(tenant, now)
        if payment != before["payment"]:
            if payment == PaymentTerms.PREPAID:
                beginning.count(tenant, now=now)
            else:
                beginning.clear(tenant)
        audit.record(
            "terms.set",
            actor=actor,
            now=now,
            tenant_id=tenant.pk,
            subject_id=tenant.pk,
            subject_label=tenant.name,
            before=", ".join(before.values()),
            after=", ".join(after.values()),
            reason=reason,
        )
        return found


def _check_owed(tenant: Tenant, now: datetime) -> None:
    """Refuse to let a tenant pay beforehand that owes something when a month ends, used or not: nothing is set aside.

    That is the least of a month, and what it committed to.
    """
    open_ended = Q(valid__endswith__gt=now) | Q(valid__upper_inf=True)
    if Minimum.objects.filter(open_ended, tenant=tenant).exists():
        raise HasMinimum(
            f"{tenant.name} agreed to spend at least so much a month, which is owed when a month ends.",
            fix="End its minimum first.",
        )
    if Commitment.objects.filter(open_ended, tenant=tenant).exists():
        raise HasCommitment(
            f"{tenant.name} committed to units that it pays for, used or not, when a month ends.",
            fix="End its commitments first.",
        )
    for month in BillingPeriod.objects.filter(tenant=tenant, status=OPEN).order_by("-span"):
        if any(part for _, part in minimums.in_force(tenant.pk, month, tenant.currency)):
            raise HasMinimum(
                f"{tenant.name} agreed to spend at least so much in {month.label}, which has no final invoice yet.",
                fix="Wait until that month is closed.",
            )
        if committing.in_force(tenant.pk, month, tenant.currency):
            raise HasCommitment(
                f"{tenant.name} was committed to units in {month.label}, which has no final invoice yet.",
                fix="Wait until that month is closed.",
            )
