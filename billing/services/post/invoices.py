"""Letters about invoices, to whoever they are made out to: final, paid, not paid, credited."""

from datetime import datetime
from zoneinfo import ZoneInfo

from billing.domain.money import Money
from billing.domain.papers import day
from billing.models import BillingDetails, CreditNote, Invoice, Letter, Payment
from billing.services.papers import keeping
from billing.services.papers.keeping import Handed
from billing.services.post.written import Written, link
from ports.mail import Enclosed
from tenants.domain.roles import Role
from tenants.models import Member

PDF = "application/pdf"
FINAL = """Invoice {invoice} for {month} comes to {total}. {pay}

It is enclosed as a PDF. Every line of it opens to what ran, at which price and for how long:
{link}
"""
PAID = """Invoice {invoice} for {month} is paid since {day}: {paid}. Nothing of it is due any longer.

{link}
"""
FAILED = """{due} of invoice {invoice} for {month} could not be collected: {why}

{then} See it, and pay it another way:
{link}
"""
CREDITED = """Credit note {note} gives {total} of invoice {invoice} for {month} back: {reason}

{went} It is enclosed as a PDF; the invoice stays as it is.
{link}
"""


def final(letter: Letter, now: datetime) -> Written | None:
    """Say what an invoice comes to and how it is paid, with its paper."""
    invoice = _invoice(letter.about)
    return Written(
        concerned(invoice.tenant_id),
        f"Invoice {invoice} for {invoice.month}: {Money(invoice.total, invoice.currency)}",
        FINAL.format(pay=_how(invoice, now), total=Money(invoice.total, invoice.currency), **_told(invoice)),
        lambda: _paper(keeping.invoice_paper(invoice, now=now)),
    )


def paid(letter: Letter, now: datetime) -> Written | None:
    """Say that nothing of an invoice is due any longer."""
    invoice = _invoice(letter.about)
    at = invoice.paid_at or now
    return Written(
        concerned(invoice.tenant_id),
        f"Invoice {invoice} for {invoice.month} is paid",
        PAID.format(
            paid=Money(invoice.to_pay, invoice.currency), day=day(at, _zone(invoice)), **_told(invoice)
        ),
    )


def failed(letter: Letter, now: datetime) -> Written | None:
    """Say that a payment did not come about, and why; None once the invoice is paid all the same."""
    payment = Payment.objects.get(pk=letter.about)
    invoice = _invoice(payment.invoice_id)
    if not invoice.due:
        return None
    then = (
        "It is tried again by itself on another day."
        if invoice.collected
        else "It is not tried again by itself."
    )
    return Written(
        concerned(invoice.tenant_id),
        f"Invoice {invoice} could not be collected",
        FAILED.format(
            due=Money(invoice.due, invoice.currency),
            why=(payment.reason.strip().rstrip(".") or "no reason was given") + ".",
            then=then,
            **_told(invoice),
        ),
    )


def credited(letter: Letter, now: datetime) -> Written | None:
    """Say what is given back and where it went, with the note's paper."""
    rows = CreditNote.objects.prefetch_related("lines")
    note = rows.get(pk=letter.about)
    note.invoice = invoice = _invoice(note.invoice_id)
    return Written(
        concerned(note.tenant_id),
        f"Credit note {note}: {Money(note.total, note.currency)} of invoice {invoice}",
        CREDITED.format(
            note=note,
            total=Money(note.total, note.currency),
            reason=note.reason.strip().rstrip(".") + ".",
            went=_went(note),
            **_told(invoice),
        ),
        lambda: _paper(keeping.credit_note_paper(note, now=now)),
    )


def wanted(tenant_id: str) -> bool:
    """Tell whether a tenant wants letters about its invoices."""
    return not BillingDetails.objects.filter(tenant=tenant_id, letters=False).exists()


def concerned(tenant_id: str) -> list[str]:
    """Return the address for invoices, or else whoever owns or pays."""
    told = BillingDetails.objects.filter(tenant=tenant_id).first()
    if told is not None and told.email:
        return [told.email]
    payers = Member.objects.filter(
        tenant=tenant_id, user__is_active=True, project=None, role__in=[Role.OWNER, Role.BILLING]
    )
    return sorted(set(payers.values_list("user__email", flat=True)))


def _invoice(key: str) -> Invoice:
    return Invoice.objects.select_related("period", "tenant").get(pk=key)


def _zone(invoice: Invoice) -> ZoneInfo:
    return ZoneInfo(invoice.period.time_zone)


def _told(invoice: Invoice) -> dict[str, object]:
    return {"invoice": invoice, "month": invoice.month, "link": link(f"invoices/{invoice.pk}/")}


def _how(invoice: Invoice, now: datetime) -> str:
    """Say what is still to be paid, how and until when."""
    if not invoice.due:
        return "Nothing of it is to be paid: it is settled already."
    due = Money(invoice.due, invoice.currency)
    rest = f"{due} of it are to be paid" if invoice.settled else "It is to be paid"
    until = f" by {day(invoice.due_at or now, _zone(invoice))}"
    how = "; it is collected from the way to pay that you left" if invoice.collected else ""
    return f"{rest}{until}{how}."


def _went(note: CreditNote) -> str:
    parts = (
        (note.off_due, "less is due on the invoice"),
        (note.to_balance, "went to your balance, which pays what comes next"),
        (note.to_grants, "went back to the credit that paid for it"),
    )
    return " ".join(f"{Money(minor, note.currency)} {words}." for minor, words in parts if minor)


def _paper(made: Handed) -> Enclosed:
    return Enclosed(made.name, PDF, made.pdf)
