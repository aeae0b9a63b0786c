"""Dispute e-mails to the billing contacts, one per step."""

from collections.abc import Sequence

from django.conf import settings

from billing.domain.money import Money
from billing.models import Dispute, DisputeStatus, Invoice
from billing.services.invoicing.disputes import dispute_outcomes
from billing.services.payments.dunning.dunning_emails import billing_contacts
from ports import mail
from tenants.models import Tenant

SUBJECTS = {
    DisputeStatus.OPEN: "Invoice {invoice}: your dispute is open",
    DisputeStatus.ACCEPTED: "Invoice {invoice}: your dispute is accepted",
    DisputeStatus.DECLINED: "Invoice {invoice}: your dispute is declined",
    DisputeStatus.WITHDRAWN: "Invoice {invoice}: the dispute is withdrawn",
}
CONSEQUENCES = {
    DisputeStatus.OPEN: "{awaited}",
    DisputeStatus.ACCEPTED: "Credit note {note} credits {back} including tax: {given}",
    DisputeStatus.DECLINED: "The invoice does not change.",
    DisputeStatus.WITHDRAWN: "The invoice does not change.",
}
EMAIL_TEXT = """{lines} of invoice {invoice} for {month}:

{words}

{then}

See the invoice:
{link}
"""


def email_dispute_step(tenant: Tenant, invoice: Invoice, disputes: Sequence[Dispute]) -> None:
    """E-mail about disputes that took the same step, after the transaction commits.

    Needs the invoice's period and the disputes' lines.
    """
    first = disputes[0]
    status, note = DisputeStatus(first.status), first.credit_note
    text = EMAIL_TEXT.format(
        lines=", ".join(f"{Money(each.total, each.currency)} of line {each.line.n}" for each in disputes),
        invoice=invoice,
        month=invoice.month,
        words=first.answer or first.reason,
        then=CONSEQUENCES[status].format(
            awaited=dispute_outcomes.describe_open_dispute(
                invoice, sum(each.total for each in disputes), paying=dispute_outcomes.has_pending_payment(invoice)
            ),
            note=note,
            back=Money(note.total, note.currency) if note else "",
            given=dispute_outcomes.describe_credit(note) if note else "",
        ),
        link=f"{settings.PUBLIC_URL.rstrip('/')}/invoices/{invoice.pk}/",
    )
    for address in billing_contacts(tenant):
        mail.send_after_commit(to=address, subject=SUBJECTS[status].format(invoice=invoice), text=text)
