"""Account status while invoices are overdue; a status set by operators is left alone."""

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from billing.domain.dunning import DunningAction
from billing.domain.money import Money
from billing.models import AccountStatus, AccountTerms, DunningStep, Invoice, InvoiceStatus, WriteOff
from billing.models.invoices import OPEN_STATUSES
from billing.services.funds.accounts import account_terms
from billing.services.payments import disputed_amounts
from tenants.models import Tenant
from tenants.services.actors import BILLING
from tenants.services.rls import system_scope, tenant_scope

DUNNING_PREFIX = "Overdue: "  # prefix of reasons set by dunning
WRITTEN_OFF_PREFIX = "Written off: "
PAID_REASON = "All overdue amounts are paid or disputed."
STATUS_BY_ACTION = {DunningAction.REMIND: AccountStatus.GRACE, DunningAction.SUSPEND: AccountStatus.SUSPENDED}
STATUS_ORDER = list(AccountStatus)


def lower_account_status(tenant: Tenant, action: DunningAction, invoice: Invoice, *, minor: int, now: datetime) -> None:
    """Lower a tenant's account status as a dunning stage requires, never raise it."""
    found = account_terms.terms_of(tenant)
    wanted = STATUS_BY_ACTION.get(action, AccountStatus.SUSPENDED)
    if STATUS_ORDER.index(wanted) <= STATUS_ORDER.index(AccountStatus(found.account_status)):
        return
    due = Money(minor, invoice.currency)
    why = f"{DUNNING_PREFIX}{due} of invoice {invoice} was due on {invoice.due_at:%d %b %Y}."
    account_terms.set_account_terms(
        tenant, payment=found.payment, account_status=wanted, why=why, actor=BILLING, now=now
    )


def restore_account_status(tenant: Tenant, invoice: Invoice, *, now: datetime) -> None:
    """Restore the account status of the last stage if an amount is collectible again."""
    last = DunningStep.objects.filter(invoice=invoice).order_by("-n").first()
    if last and (minor := disputed_amounts.collectible_amount(invoice)) > 0:
        lower_account_status(tenant, DunningAction(last.action), invoice, minor=minor, now=now)


def suspend_written_off(tenant: Tenant, invoice: Invoice, written: WriteOff, *, now: datetime) -> None:
    """Suspend a tenant whose invoice is not collected any more, until it pays after all."""
    found = account_terms.terms_of(tenant)
    if found.account_status == AccountStatus.SUSPENDED:
        return
    why = f"{WRITTEN_OFF_PREFIX}{Money(written.minor, written.currency)} of invoice {invoice}."
    account_terms.set_account_terms(
        tenant, payment=found.payment, account_status=AccountStatus.SUSPENDED, why=why, actor=BILLING, now=now
    )


def clear_overdue_statuses(*, now: datetime) -> int:
    """Clear the overdue status of tenants with no undisputed overdue invoice left; return how many."""
    with system_scope():
        found = list(_paid_up().values_list("tenant_id", flat=True))
    for tenant_id in found:
        with tenant_scope(tenant_id):
            _set_good(tenant_id, now)
    return len(found)


def clear_overdue_status(tenant_id: str, *, now: datetime) -> None:
    """Clear one tenant's overdue status if nothing is overdue any more; in its RLS scope."""
    if _paid_up().filter(tenant=tenant_id).exists():
        _set_good(tenant_id, now)


def _paid_up() -> QuerySet[AccountTerms]:
    """Return the terms that dunning lowered, of tenants that owe nothing overdue or written off."""
    reminded = Invoice.objects.filter(
        Exists(DunningStep.objects.filter(invoice=OuterRef("pk"))),
        tenant=OuterRef("tenant"),
        status__in=OPEN_STATUSES,
    )
    due = disputed_amounts.collectible_invoices(reminded)
    lost = Invoice.objects.filter(tenant=OuterRef("tenant"), status=InvoiceStatus.UNCOLLECTIBLE)
    by_dunning = Q(why__startswith=DUNNING_PREFIX) | Q(why__startswith=WRITTEN_OFF_PREFIX)
    return AccountTerms.objects.filter(by_dunning, ~Exists(due), ~Exists(lost)).exclude(
        account_status=AccountStatus.GOOD
    )


def _set_good(tenant_id: str, now: datetime) -> None:
    tenant = Tenant.objects.get(pk=tenant_id)
    account_terms.set_account_terms(
        tenant,
        payment=account_terms.terms_of(tenant).payment,
        account_status=AccountStatus.GOOD,
        why=PAID_REASON,
        actor=BILLING,
        now=now,
    )
