"""Invoice e-mails to the billing contact: finalized, paid, payment failed, credited."""

from datetime import datetime
from zoneinfo import ZoneInfo

from billing.domain.documents import format_day
from billing.domain.money import Money
from billing.models import BillingDetails, CreditNote, Invoice, InvoiceStatus, Payment, QueuedEmail
from billing.services.documents import document_store
from billing.services.documents.document_store import PdfFile
from billing.services.notifications.email_message import OutgoingEmail, portal_link
from ports.mail import Attachment
from tenants.domain.roles import Role
from tenants.models import Member

PDF = "application/pdf"
FINAL = """Invoice {invoice} for {month} is ready: {total}. {pay}

The PDF is attached. See every line with its leases, prices and durations:
{link}
"""
REPORT = """The cost report for {month} is ready: {total}. It is for information; no payment is due.

The PDF is attached. See every line with its leases, prices and durations:
{link}
"""
PAID = """Invoice {invoice} for {month} was paid on {day}: {paid}. No amount is due.

{link}
"""
FAILED = """{due} of invoice {invoice} for {month} could not be charged: {why}

{then} View the invoice or pay it another way:
{link}
"""
CREDITED = """Credit note {note} credits {total} of invoice {invoice} for {month}: {reason}

{went} The PDF is attached. The invoice itself does not change.
{link}
"""


def write_invoice_finalized(queued: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail about a final invoice and how it is paid, with its PDF."""
    invoice = _get_invoice(queued.subject_id)
    if invoice.status == InvoiceStatus.REPORTED:
        total = Money(invoice.total, invoice.currency)
        return OutgoingEmail(
            invoice_recipients(invoice.tenant_id),
            f"Cost report for {invoice.month}: {total}",
            REPORT.format(total=total, **_invoice_values(invoice)),
            lambda: _attachment(document_store.invoice_pdf(invoice, now=now)),
        )
    return OutgoingEmail(
        invoice_recipients(invoice.tenant_id),
        f"Invoice {invoice} for {invoice.month}: {Money(invoice.total, invoice.currency)}",
        FINAL.format(
            pay=_describe_payment(invoice, now),
            total=Money(invoice.total, invoice.currency),
            **_invoice_values(invoice),
        ),
        lambda: _attachment(document_store.invoice_pdf(invoice, now=now)),
    )


def write_invoice_paid(queued: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail that an invoice is paid."""
    invoice = _get_invoice(queued.subject_id)
    at = invoice.paid_at or now
    return OutgoingEmail(
        invoice_recipients(invoice.tenant_id),
        f"Invoice {invoice} for {invoice.month} is paid",
        PAID.format(
            paid=Money(invoice.to_pay, invoice.currency), day=format_day(at, _zone(invoice)), **_invoice_values(invoice)
        ),
    )


def write_payment_failed(queued: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail about a failed payment; None if the invoice was paid meanwhile."""
    payment = Payment.objects.get(pk=queued.subject_id)
    invoice = _get_invoice(payment.invoice_id)
    if not invoice.due:
        return None
    then = "We will retry it automatically." if invoice.collected else "It is not retried automatically."
    return OutgoingEmail(
        invoice_recipients(invoice.tenant_id),
        f"Payment of invoice {invoice} failed",
        FAILED.format(
            due=Money(invoice.due, invoice.currency),
            why=(payment.reason.strip().rstrip(".") or "no reason given") + ".",
            then=then,
            **_invoice_values(invoice),
        ),
    )


def write_credit_note_issued(queued: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail about a credit note, with its PDF."""
    rows = CreditNote.objects.prefetch_related("lines")
    note = rows.get(pk=queued.subject_id)
    note.invoice = invoice = _get_invoice(note.invoice_id)
    return OutgoingEmail(
        invoice_recipients(note.tenant_id),
        f"Credit note {note}: {Money(note.total, note.currency)} of invoice {invoice}",
        CREDITED.format(
            note=note,
            total=Money(note.total, note.currency),
            reason=note.reason.strip().rstrip(".") + ".",
            went=_describe_credit(note),
            **_invoice_values(invoice),
        ),
        lambda: _attachment(document_store.credit_note_pdf(note, now=now)),
    )


def wants_invoice_emails(tenant_id: str) -> bool:
    """Return whether a tenant wants e-mails about its invoices."""
    return not BillingDetails.objects.filter(tenant=tenant_id, emails_enabled=False).exists()


def invoice_recipients(tenant_id: str) -> list[str]:
    """Return the billing e-mail address, or else owners and billing members."""
    details = BillingDetails.objects.filter(tenant=tenant_id).first()
    if details is not None and details.email:
        return [details.email]
    payers = Member.objects.filter(
        tenant=tenant_id, user__is_active=True, project=None, role__in=[Role.OWNER, Role.BILLING]
    )
    return sorted(set(payers.values_list("user__email", flat=True)))


def _get_invoice(key: str) -> Invoice:
    return Invoice.objects.select_related("period", "tenant").get(pk=key)


def _zone(invoice: Invoice) -> ZoneInfo:
    return ZoneInfo(invoice.period.time_zone)


def _invoice_values(invoice: Invoice) -> dict[str, object]:
    return {"invoice": invoice, "month": invoice.month, "link": portal_link(f"invoices/{invoice.pk}/")}


def _describe_payment(invoice: Invoice, now: datetime) -> str:
    """Describe what is still to be paid, how and until when."""
    if not invoice.due:
        return "No payment is needed: the invoice is settled."
    due = Money(invoice.due, invoice.currency)
    rest = f"{due} is due" if invoice.settled else "Payment is due"
    until = f" by {format_day(invoice.due_at or now, _zone(invoice))}"
    how = "; we charge your saved payment method automatically" if invoice.collected else ""
    return f"{rest}{until}{how}."


def _describe_credit(note: CreditNote) -> str:
    parts = (
        (note.reduced_due, "was deducted from the amount due"),
        (note.to_balance, "was added to your balance, which pays your next charges"),
        (note.to_grants, "was returned to the credit that paid for it"),
    )
    return " ".join(f"{Money(minor, note.currency)} {words}." for minor, words in parts if minor)


def _attachment(made: PdfFile) -> Attachment:
    return Attachment(made.name, PDF, made.pdf)
