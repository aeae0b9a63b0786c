"""Letters about disputes, to whoever pays: one for each step."""

from collections.abc import Sequence

from django.conf import settings

from billing.domain.money import Money
from billing.models import Dispute, DisputeStatus, Invoice
from billing.services.disputes import outcome
from billing.services.dunning.letters import concerned
from ports import mail
from tenants.models import Tenant

SUBJECT = {
    DisputeStatus.OPEN: "Invoice {invoice}: your dispute is open",
    DisputeStatus.ACCEPTED: "Invoice {invoice}: your dispute is accepted",
    DisputeStatus.DECLINED: "Invoice {invoice}: your dispute is declined",
    DisputeStatus.WITHDRAWN: "Invoice {invoice}: the dispute is withdrawn",
}
THEN = {
    DisputeStatus.OPEN: "{awaited}",
    DisputeStatus.ACCEPTED: "Credit note {note} gives {back} back, with the tax on it: {given}",
    DisputeStatus.DECLINED: "The invoice stays as it is.",
    DisputeStatus.WITHDRAWN: "The invoice stays as it is.",
}
LETTER = """{lines} of invoice {invoice} for {month}:

{words}

{then}

See the invoice:
{link}
"""


def write(tenant: Tenant, invoice: Invoice, disputes: Sequence[Dispute]) -> None:
    """Write of disputes that took the same step, once the transaction has committed. Needs period and lines."""
    first = disputes[0]
    status, note = DisputeStatus(first.status), first.credit_note
    text = LETTER.format(
        lines=", ".join(f"{Money(each.total, each.currency)} of line {each.line.n}" for each in disputes),
        invoice=invoice,
        month=invoice.month,
        words=first.answer or first.reason,
        then=THEN[status].format(
            awaited=outcome.awaited(
                invoice, sum(each.total for each in disputes), paying=outcome.under_way(invoice)
            ),
            note=note,
            back=Money(note.total, note.currency) if note else "",
            given=outcome.given(note) if note else "",
        ),
        link=f"{settings.PUBLIC_URL.rstrip('/')}/invoices/{invoice.pk}/",
    )
    for address in concerned(tenant):
        mail.send(to=address, subject=SUBJECT[status].format(invoice=invoice), text=text)
