"""Cancel an issued invoice by a credit note.

Its month is open again, and is issued anew.

The money that was paid goes to the balance and credit back to its grants; both pay the new invoice. The
month is held until an operator approves it, so that usage, prices and addresses can be corrected first.
"""

from datetime import datetime, timedelta

from django.db import transaction

from billing.models import BillingPeriod, CreditNote, Invoice, InvoiceStatus
from billing.models.invoices import OPEN_STATUSES
from billing.models.payments import UNSETTLED
from billing.models.periods import OPEN
from billing.services.documents import stored_bundles
from billing.services.funds.grants import new_grants
from billing.services.funds.grants.new_grants import GrantTerms
from billing.services.funds.wallets import wallet_balances
from billing.services.invoicing import credit_notes, drafts
from billing.services.payments import disputed_amounts
from billing.services.periods import billing_periods
from broker.services.leases.lifecycle import eviction
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope

LAPSED_GRANT_LASTS = timedelta(days=90)  # of credit that expired since it had paid the cancelled invoice
REBILLABLE = (*OPEN_STATUSES, InvoiceStatus.PAID)


class NotRebillable(ProblemError):
    code, status, title = "not-rebillable", 409, "The invoice cannot be cancelled and issued again now"


@transaction.atomic
def cancel_and_reopen(invoice: Invoice, *, why: str, actor: Actor, now: datetime) -> Invoice:
    """Cancel an invoice and open its month again; return it.

    Repeating it changes nothing.

    Raises NotRebillable for a draft, after another credit note, with an open dispute, while a payment is in
    progress, and for a prepaid tenant.
    """
    reason = eviction.clean_reason(why)
    with tenant_scope(invoice.tenant_id):
        tenant = Tenant.objects.get(pk=invoice.tenant_id)
        billing_periods.take_tenant_billing_locks([tenant.pk])
        month = BillingPeriod.objects.select_for_update(no_key=True).get(pk=invoice.period_id)
        invoice = Invoice.objects.select_for_update(of=("self",)).select_related("period", "tenant").get(pk=invoice.pk)
        if invoice.status == InvoiceStatus.VOID:
            return invoice
        _check_rebillable(invoice, tenant)
        stored_bundles.store_bundle(invoice, now=now)
        note = _credit_all(invoice, f"Cancelled and issued again: {reason}"[:150], actor, now)
        Invoice.objects.filter(pk=invoice.pk).update(status=InvoiceStatus.VOID)
        BillingPeriod.objects.filter(pk=month.pk).update(
            status=OPEN,
            closed_at=None,
            revision=month.revision + 1,
            review_since=now,
            held_at=now,
            held_reason=f"Invoice {invoice} was cancelled: {reason}",
            approved_at=None,
            decided_by=actor.label,
        )
        audit.record(
            "invoice.rebill",
            invoice,
            actor=actor,
            now=now,
            amount=invoice.total,
            currency=invoice.currency,
            reason=reason,
            **({"credit_note": str(note)} if note else {}),
        )
        drafts.refresh_drafts(tenant, now=now)
        invoice.refresh_from_db()
        return invoice


def replacement_of(invoice: Invoice) -> Invoice | None:
    """Return the invoice that replaces a cancelled one, or None."""
    return Invoice.objects.filter(rebills=invoice.pk).select_related("period").first() if invoice.pk else None


def _check_rebillable(invoice: Invoice, tenant: Tenant) -> None:
    if invoice.status not in REBILLABLE:
        raise NotRebillable(
            f"This invoice is {invoice.get_status_display().lower()}.",
            fix="Only an issued invoice can be issued again. Undo its write-off first, if it has one.",
        )
    if waits := invoice.payments.filter(status__in=UNSETTLED).first():
        raise NotRebillable(f"Payment {waits.pk} of invoice {invoice} is in progress.", fix="Wait until it is settled.")
    if note := invoice.credit_notes.first():
        raise NotRebillable(
            f"Credit note {note} already credits a part of invoice {invoice}, which a new invoice would charge again.",
            fix="Credit what else is wrong with another credit note.",
        )
    if disputed_amounts.open_disputes_of(invoice):
        raise NotRebillable(f"Lines of invoice {invoice} are disputed.", fix="Answer the disputes first.")
    if wallet_balances.is_prepaid(tenant.pk):
        raise NotRebillable(
            f"{tenant.name} pays in advance; the money of a closed month is no longer held.",
            fix="Credit the wrong lines with a credit note; the money goes back to the wallet.",
        )


def _credit_all(invoice: Invoice, why: str, actor: Actor, now: datetime) -> CreditNote | None:
    """Credit the whole invoice.

    Credit that has expired since is granted again, so that nobody loses it.
    """
    if not any(line.remaining for line in credit_notes.creditable_lines(invoice)):
        return None
    note = credit_notes.issue_credit_note(invoice, wanted=None, seen=0, why=why, actor=actor, now=now)
    for back in note.grant_returns.filter(lapsed=True).select_related("grant__project", "grant__offering"):
        grant = back.grant
        terms = GrantTerms(
            minor=back.minor,
            reason=f"Returned by credit note {note}: {grant.reason}"[:150],
            project=grant.project,
            offering=grant.offering,
            priority=grant.priority,
            expires_at=now + LAPSED_GRANT_LASTS,
        )
        new_grants.give_grant(invoice.tenant, terms, idem=f"rebill {back.pk}", actor=actor, now=now)
    return note
