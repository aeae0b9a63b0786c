"""Cancel an invoice and issue it again, for operators."""

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.models import Invoice
from billing.services.cancellations import cancelled_invoices
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    operator_page,
)


@operator_page("invoice", methods=SAFE_OR_POST)
def rebill_invoice(request: OperatorRequest, pk: str) -> HttpResponse:
    """Ask for confirmation, then cancel an invoice and open its month again."""
    rows = Invoice.objects.select_related("period", "tenant")
    found = find_row(rows, pk, _("Invoice"), fix=_("Select it from the list of invoices."))
    credited = [str(note) for note in found.credit_notes.filter(correction_id="").order_by("issued_at")]

    def act(why: str) -> str:
        again = not credited or "option" in request.POST
        cancelled_invoices.cancel_and_reopen(found, why=why, credits_again=again, actor=request.actor, now=request.now)
        return _("Invoice {found} is cancelled. Correct the month, then approve it to issue the new invoice.").format(
            found=found
        )

    step = Confirmation(
        title=_("Cancel invoice {found} of {name}, {amount}, and issue it again?").format(
            found=found, name=found.tenant.name, amount=Money(found.total, found.currency)
        ),
        verb=_("Cancel and issue again"),
        decline=_("Keep the invoice"),
        back=reverse("ops-invoice", args=[pk]),
        lines=(
            _("A credit note cancels all that is left of the invoice. Paid money goes to the balance, credits to their"
              " grants; both pay the new invoice, and a prepaid tenant's are kept for it."),
            _("The month is held: correct usage, prices or billing details, then approve it on the Month close page."
              " The new invoice gets its own number and due date."),
        ),
        danger=True,
        hint=_("Visible to the tenant on the credit note."),
        option=_(
            "Credit again on the new invoice what {notes} credited. Untick it if you correct that in the month."
        ).format(notes=", ".join(credited))
        if credited
        else "",
    )  # fmt: skip
    return confirm_action(request, step, act)
