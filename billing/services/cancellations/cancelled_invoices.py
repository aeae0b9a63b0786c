"""Cancel an issued invoice by a credit note.

Its month is open again, and is issued anew.

The money that was paid goes to the balance and credit back to its grants; both pay the new invoice, and
a prepaid tenant's are kept for it. Earlier credit notes stay: the cancellation credits what they left, and
what they credited is credited on the new invoice again. The month is held until an operator approves it, so
that usage, prices and addresses can be corrected first.
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
from billing.services.funds.wallets import reopened_months, wallet_balances
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
def cancel_and_reopen(
    invoice: Invoice, *, why: str, actor: Actor, now: datetime, credits_again: bool = True
) -> Invoice:
    """Cancel an invoice and open its month again; return it.

    Repeating it changes nothing. `credits_again` credits on the new invoice what operators credited of this
    one before; corrections are credited again in any case.

    Raises NotRebillable for a draft, with an open dispute, and while a payment is in progress.
    """
    reason = eviction.clean_reason(why)
    with tenant_scope(invoice.tenant_id):
        tenant = Tenant.objects.get(pk=invoice.tenant_id)
        billing_periods.take_tenant_billing_locks([tenant.pk])
        month = BillingPeriod.objects.select_for_update(no_key=True).get(pk=invoice.period_id)
        invoice = Invoice.objects.select_for_update(of=("self",)).select_related("period", "tenant").get(pk=invoice.pk)
        if invoice.status == InvoiceStatus.VOID:
            return invoice
        _check_rebillable(invoice)
        stored_bundles.store_bundle(invoice, credits_again=credits_again, now=now)
        note = _credit_all(invoice, f"Cancelled and issued again: {reason}"[:150], actor, now)
        Invoice.objects.filter(pk=invoice.pk).update(status=InvoiceStatus.VOID)
        if note and wallet_balances.is_prepaid(tenant.pk):
            reopened_months.keep_for_month(tenant, month, note.total - note.reduced_due)
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


def _check_rebillable(invoice: Invoice) -> None:
    if invoice.status not in REBILLABLE:
        raise NotRebillable(
            f"This invoice is {invoice.get_status_display().lower()}.",
            fix="Only an issued invoice can be issued again. Undo its write-off first, if it has one.",
        )
    if waits := invoice.payments.filter(status__in=UNSETTLED).first():
        raise NotRebillable(f"Payment {waits.pk} of invoice {invoice} is in progress.", fix="Wait until it is settled.")
    if disputes := disputed_amounts.open_disputes_of(invoice):
        lines = ", ".join(str(each.line.n) for each in disputes)
        raise NotRebillable(
            f"The tenant disputes lines of invoice {invoice}: {lines}.",
            fix="Accept or decline the dispute on the page Disputes first. An accepted one is credited, and credited"
            " again on the new invoice.",
        )


def _credit_all(invoice: Invoice, why: str, actor: Actor, now: datetime) -> CreditNote | None:
    """Credit what is left of the invoice.

    Credit that has expired since is granted again, so that nobody loses it.
    """
    lines = credit_notes.creditable_lines(invoice)
    if not any(line.remaining for line in lines):
        return None
    seen = sum(line.credited for line in lines)
    note = credit_notes.issue_credit_note(invoice, wanted=None, seen=seen, why=why, actor=actor, now=now)
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
