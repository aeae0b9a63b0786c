"""Payment terms and account status of a tenant, set by operators or dunning."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from billing.models import AccountStatus, AccountTerms, BillingPeriod, Commitment, Invoice, Minimum, PaymentTerms
from billing.models.periods import OPEN
from billing.services.adjustments import commitment_adjustments, minimum_adjustments
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.funds.wallets import prepaid_start
from broker.services.leases.lifecycle import eviction
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import tenant_scope


def terms_of(tenant: Tenant) -> AccountTerms:
    """Return a tenant's terms; unsaved defaults if none were set. One query.

    The defaults are payment as the settings say, by invoice or not at all, and status good.
    """
    found = AccountTerms.objects.filter(tenant=tenant).first()
    return found or AccountTerms(tenant=tenant, payment=settings.DEFAULT_PAYMENT_TERMS, since=tenant.created_at)


class HasMinimum(ProblemError):
    code, status, title = "has-minimum", 409, "This tenant has a minimum"


class MonthNotFinal(ProblemError):
    code, status, title = "month-not-final", 409, "A month that is over has no final invoice yet"


class HasCommitment(ProblemError):
    code, status, title = "has-commitment", 409, "This tenant has a commitment"


@transaction.atomic
def set_account_terms(
    tenant: Tenant, *, payment: str, account_status: str, why: str, actor: Actor, now: datetime
) -> AccountTerms:
    """Set payment terms and account status, for a reason shown to the tenant.

    Setting what is already set changes nothing. Leases of a tenant that now pays in advance are covered
    by its wallet from the next check on, or ended. Nobody of the tenant takes money meanwhile. A change
    to or from show-back applies to the whole of the current month; raises MonthNotFinal before earlier
    ones are final.
    """
    if payment not in PaymentTerms.values:
        raise InvalidValue(
            "payment", "The payment terms are not valid.", fix=f"Choose {' or '.join(PaymentTerms.values)}."
        )
    if account_status not in AccountStatus.values:
        raise InvalidValue(
            "account_status", "The account status is not valid.", fix=f"Choose {', '.join(AccountStatus.values)}."
        )
    reason = eviction.clean_reason(why)
    with tenant_scope(tenant.pk):
        lock_tenant_funds(tenant.pk)
        found = terms_of(tenant)
        before = {"payment": found.payment, "account_status": found.account_status}
        after = {"payment": payment, "account_status": account_status}
        if before == after:
            return found
        fields = {**after, "why": reason, "since": now}
        if found.pk is None:
            found = AccountTerms.objects.create(tenant=tenant, **fields)
        else:
            AccountTerms.objects.filter(pk=found.pk).update(**fields, version=F("version") + 1)
            found.refresh_from_db()
        if PaymentTerms.SHOWBACK in (payment, before["payment"]) and payment != before["payment"]:
            _check_months_final(tenant, now)
        if payment == PaymentTerms.PREPAID and payment != before["payment"]:
            _check_no_obligations(tenant, now)
        if payment != before["payment"]:
            if payment == PaymentTerms.PREPAID:
                prepaid_start.start_prepaid(tenant, now=now)
            else:
                prepaid_start.release_wallet(tenant)
        audit.record(
            "terms.set",
            tenant,
            actor=actor,
            now=now,
            before=", ".join(before.values()),
            after=", ".join(after.values()),
            reason=reason,
        )
        return found


def _check_months_final(tenant: Tenant, now: datetime) -> None:
    """Refuse a change between paying and show-back before earlier months are final.

    Terms apply to whole months: an invoice would become a report, or a report an invoice.
    """
    over = BillingPeriod.objects.filter(tenant=tenant, status=OPEN, span__endswith__lte=now)
    if month := over.filter(Exists(Invoice.objects.filter(period=OuterRef("pk")))).order_by("span").first():
        raise MonthNotFinal(
            f"{month.label} of {tenant.name} is over and not final. It would become"
            " an invoice instead of a report, or the other way round.",
            fix=f"Approve {month.label} on the page Month close, or wait until it is closed.",
        )


def _check_no_obligations(tenant: Tenant, now: datetime) -> None:
    """Refuse prepaid terms to a tenant with a minimum or a commitment.

    Both are owed when a month ends, used or not, and no money is reserved for them.
    """
    open_ended = Q(valid__endswith__gt=now) | Q(valid__upper_inf=True)
    if Minimum.objects.filter(open_ended, tenant=tenant).exists():
        raise HasMinimum(
            f"{tenant.name} has a minimum spend, which is billed at the end of the month.",
            fix="End the minimum spend first.",
        )
    if Commitment.objects.filter(open_ended, tenant=tenant).exists():
        raise HasCommitment(
            f"{tenant.name} has commitments, which are billed at the end of the month.",
            fix="End the commitments first.",
        )
    for month in BillingPeriod.objects.filter(tenant=tenant, status=OPEN).order_by("-span"):
        if any(part for _, part in minimum_adjustments.minimums_in_force(tenant.pk, month, tenant.currency)):
            raise HasMinimum(
                f"{tenant.name} has a minimum spend in {month.label}, which has no final invoice yet.",
                fix="Wait until that month is closed.",
            )
        if commitment_adjustments.commitments_in_force(tenant.pk, month, tenant.currency):
            raise HasCommitment(
                f"{tenant.name} has commitments in {month.label}, which has no final invoice yet.",
                fix="Wait until that month is closed.",
            )
