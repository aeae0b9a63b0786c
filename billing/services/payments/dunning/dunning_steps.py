"""Dunning of overdue invoices: each stage on its day, never while a payment is pending."""

from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Count

from billing.domain.dunning import DunningAction, DunningStage, next_stage_at
from billing.domain.money import Money
from billing.models import BankReceipt, DunningStep, Invoice
from billing.models.invoices import OPEN_STATUSES
from billing.models.payments import UNSETTLED
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.ledger import ledger_balances
from billing.services.payments import disputed_amounts
from billing.services.payments.bank_statements import entry_matching
from billing.services.payments.dunning import dunning_emails, dunning_plan, overdue_status
from broker.domain.lifecycle.states import EndReason
from broker.models import Lease
from broker.services.leases.lifecycle import termination
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import BILLING
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)


def run_dunning(*, now: datetime) -> int:
    """Take the next stage of every invoice that is due for one; return how many.

    Idempotent.
    """
    steps = dunning_plan.dunning_stages()
    if not steps:
        return 0
    with system_scope():
        late = Invoice.objects.filter(status__in=OPEN_STATUSES, due_at__lte=now - steps[0].after)
        open_ = (
            disputed_amounts.collectible_invoices(late).annotate(taken=Count("reminders")).filter(taken__lt=len(steps))
        )
        found = list(open_.order_by("due_at", "pk").values_list("pk", "tenant_id"))
    taken = 0
    for invoice_id, tenant_id in found:
        try:
            taken += _take_stage(invoice_id, tenant_id, steps, now)
        except DatabaseError as error:
            log.error("dunning of an overdue invoice failed", invoice=invoice_id, why=str(error).strip())
    return taken


def _take_stage(invoice_id: str, tenant_id: str, steps: tuple[DunningStage, ...], now: datetime) -> bool:
    """Take one stage of an invoice if it is due.

    Leases are ended and the stage recorded in one transaction.
    """
    with tenant_scope(tenant_id):
        tenant = Tenant.objects.get(pk=tenant_id)
        if _due_stage(invoice_id, steps, now) is None:
            return False
        lock_tenant_funds(tenant_id)  # the first of all locks, in the same order as collecting payments
        # Then the invoice, as payments and disputes do; the decision is made under this lock.
        rows = Invoice.objects.select_for_update(no_key=True, of=("self",)).select_related("period")
        invoice = rows.get(pk=invoice_id)
        if (found := _due_stage(invoice_id, steps, now)) is None:
            return False  # paid, disputed, or handled by another worker while waiting for the locks
        step, minor = found
        if step.action is DunningAction.END:
            _end_all_leases(tenant, now)
        _record_stage(invoice, tenant, step, minor, now)
        return True


def _due_stage(invoice_id: str, steps: tuple[DunningStage, ...], now: datetime) -> tuple[DunningStage, int] | None:
    """Return the stage due now and its amount, or None.

    None also while a payment is pending.

    A disputed amount gets, from the answer on, as many days as if it had become due then; the rest keeps
    its own date. While any part is disputed there are only reminders, because the rest cannot be paid
    separately; and stages beyond a reminder keep their distance from the last answer, too.
    """
    invoice = Invoice.objects.get(pk=invoice_id)
    if invoice.due_at is None or invoice.payments.filter(status__in=UNSETTLED).exists():
        return None
    done = list(DunningStep.objects.filter(invoice=invoice).order_by("n").values_list("done_at", flat=True))
    at = next_stage_at(steps, due=invoice.due_at, done=done)
    if at is None or at > now:
        return None
    step = steps[len(done)]
    minor = disputed_amounts.collectible_amount(invoice) - disputed_amounts.recently_answered_amount(
        invoice, since=now - step.after
    )
    if minor <= 0:
        return None
    is_email = step.action is DunningAction.REMIND
    return (step, minor) if is_email or _may_escalate(invoice, steps, len(done), minor, now) else None


def _may_escalate(invoice: Invoice, steps: tuple[DunningStage, ...], n: int, minor: int, now: datetime) -> bool:
    """Return whether a stage beyond a reminder may be next.

    Nothing may be disputed, the last answer or returned transfer must be old enough, and no money of the
    tenant may be with us unassigned: on its balance, or on a statement that nobody has decided yet.
    """
    between = steps[n].after - (steps[n - 1].after if n else timedelta())
    lately = (disputed_amounts.last_answered_at(invoice), _last_reversed_at(invoice))
    return (
        not disputed_amounts.open_disputes_of(invoice)
        and all(at is None or at + between <= now for at in lately)
        and ledger_balances.available_balance(invoice.tenant_id, invoice.currency) < minor
        and not entry_matching.has_undecided_money(invoice.tenant_id)
    )


def _last_reversed_at(invoice: Invoice) -> datetime | None:
    """Return when a transfer that had paid a part of an invoice was last reversed."""
    found = BankReceipt.objects.filter(parts__invoice=invoice, reversed_at__isnull=False)
    return found.order_by("-reversed_at").values_list("reversed_at", flat=True).first()


def _record_stage(invoice: Invoice, tenant: Tenant, step: DunningStage, minor: int, now: datetime) -> None:
    DunningStep.objects.create(
        tenant=tenant,
        invoice=invoice,
        n=DunningStep.objects.filter(invoice=invoice).count(),
        action=step.action.value,
        minor=minor,
        done_at=now,
    )
    overdue_status.lower_account_status(tenant, step.action, invoice, minor=minor, now=now)
    dunning_emails.email_overdue(tenant, invoice, step.action, minor=minor)
    audit.record(
        "invoice.remind",
        invoice,
        actor=BILLING,
        now=now,
        step=step.action.value,
        due=str(Money(minor, invoice.currency)),
    )


def _end_all_leases(tenant: Tenant, now: datetime) -> None:
    """End all live leases of a tenant."""
    with transaction.atomic():
        rows = Lease.objects.live().select_for_update(of=("self",)).select_related("offering")
        for lease in rows.filter(tenant=tenant).order_by("pk"):
            termination.release_lease(lease, reason=EndReason.UNPAID, now=now, actor=BILLING)
