"""Write off what is due on an invoice, or take that back.

The tax in it is no longer owed to a state either. Later transfers for it make the loss smaller, and raise
the tax again.
"""

from datetime import datetime

from django.db import transaction

from billing.domain.money import Money
from billing.models import Invoice, InvoiceStatus, WriteOff
from billing.models.invoices import OPEN_STATUSES
from billing.models.payments import UNSETTLED
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.ledger import posting
from billing.services.payments import bad_debt_taxes
from billing.services.payments.dunning import overdue_status
from broker.services.leases.lifecycle import eviction
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope


class NotWrittenOff(ProblemError):
    code, status, title = "write-off-not-allowed", 409, "The invoice cannot be written off now"


@transaction.atomic
def write_off_invoice(invoice: Invoice, *, why: str, actor: Actor, now: datetime) -> WriteOff:
    """Write off all that is due; the invoice is uncollectible, and its tenant stays suspended.

    Repeating it changes nothing. Raises NotWrittenOff if nothing is due or a payment is in progress.
    """
    reason = eviction.clean_reason(why)
    with tenant_scope(invoice.tenant_id):
        lock_tenant_funds(invoice.tenant_id)
        invoice = Invoice.objects.select_for_update(of=("self",)).select_related("period").get(pk=invoice.pk)
        if before := invoice.write_offs.filter(undone_at=None).first():
            return before
        if invoice.status not in OPEN_STATUSES or invoice.due <= 0:
            raise NotWrittenOff(
                f"Nothing is due on this invoice; it is {invoice.get_status_display().lower()}.",
                fix="Only what is due on a final invoice can be written off.",
            )
        if waits := invoice.payments.filter(status__in=UNSETTLED).first():
            raise NotWrittenOff(
                f"Payment {waits.pk} of invoice {invoice} is in progress.", fix="Wait until it is settled."
            )
        written = WriteOff.objects.create(
            tenant_id=invoice.tenant_id,
            invoice=invoice,
            currency=invoice.currency,
            minor=invoice.due,
            tax=bad_debt_taxes.tax_in_due(invoice),
            reason=reason,
            at=now,
            by=actor.label,
        )
        invoice.status = InvoiceStatus.UNCOLLECTIBLE
        invoice.save(update_fields=["status"])
        overdue_status.suspend_written_off(Tenant.objects.get(pk=invoice.tenant_id), invoice, written, now=now)
        _record("invoice.write_off", invoice, written.minor, reason, actor, now)
        posting.post_write_offs([written.pk], now=now)
        return written


@transaction.atomic
def undo_write_off(invoice: Invoice, *, why: str, actor: Actor, now: datetime) -> Invoice:
    """Make due again what was written off and not recovered since; repeating it changes nothing."""
    reason = eviction.clean_reason(why)
    with tenant_scope(invoice.tenant_id):
        lock_tenant_funds(invoice.tenant_id)
        invoice = Invoice.objects.select_for_update(of=("self",)).select_related("period").get(pk=invoice.pk)
        written = WriteOff.objects.filter(invoice=invoice, undone_at=None).first()
        if written is None or invoice.status != InvoiceStatus.UNCOLLECTIBLE:
            return invoice
        left = invoice.to_pay - invoice.received
        WriteOff.objects.filter(pk=written.pk).update(
            undone_at=now,
            undone_minor=left,
            undone_tax=bad_debt_taxes.tax_still_corrected(written, left),
            undone_by=actor.label,
        )
        invoice.status = InvoiceStatus.PARTIALLY_PAID if invoice.received else InvoiceStatus.FINALIZED
        invoice.save(update_fields=["status"])
        tenant = Tenant.objects.get(pk=invoice.tenant_id)
        overdue_status.clear_overdue_status(tenant.pk, now=now)
        overdue_status.restore_account_status(tenant, invoice, now=now)
        _record("invoice.reinstate", invoice, left, reason, actor, now)
        posting.post_write_offs([written.pk], now=now)
        return invoice


def _record(action: str, invoice: Invoice, minor: int, reason: str, actor: Actor, now: datetime) -> None:
    audit.record(
        action,
        invoice,
        f"{Money(minor, invoice.currency)} of invoice {invoice}",
        actor=actor,
        now=now,
        amount=minor,
        currency=invoice.currency,
        reason=reason,
    )
