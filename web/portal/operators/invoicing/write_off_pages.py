"""Write off what is due on an invoice, or make it due again, for operators."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.models import Invoice
from billing.services.payments import write_offs
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    operator_page,
)


@operator_page("invoice", methods=SAFE_OR_POST)
def write_off(request: OperatorRequest, pk: str) -> HttpResponse:
    """Ask for confirmation, then write off what is due on an invoice."""
    found = _find_invoice(pk)
    due = Money(found.due, found.currency)
    if request.method == "GET" and not found.due:
        messages.warning(request, _("Nothing is due on invoice {found}.").format(found=found))
        return redirect("ops-invoice", pk=pk)

    def act(why: str) -> str:
        written = write_offs.write_off_invoice(found, why=why, actor=request.actor, now=request.now)
        return _("{amount} written off.").format(amount=Money(written.minor, written.currency))

    step = Confirmation(
        title=_("Write off {due} of invoice {found} of {tenant_name}?").format(
            due=due, found=found, tenant_name=found.tenant.name
        ),
        verb=_("Write off {due}").format(due=due),
        back=reverse("ops-invoice", args=[pk]),
        lines=(
            _("The amount is a loss in the ledger and is no longer collected. The tenant cannot start leases."),
            _("A later bank transfer for the invoice makes the loss smaller. It can be made due again."),
        ),
        danger=True,
        hint=_("Visible to other operators."),
    )
    return confirm_action(request, step, act)


@operator_page("invoice", methods=SAFE_OR_POST)
def reinstate(request: OperatorRequest, pk: str) -> HttpResponse:
    """Ask for confirmation, then make due again what was written off."""
    found = _find_invoice(pk)

    def act(why: str) -> str:
        write_offs.undo_write_off(found, why=why, actor=request.actor, now=request.now)
        return _("Invoice {found} is due again.").format(found=found)

    step = Confirmation(
        title=_("Make invoice {found} of {tenant_name} due again?").format(found=found, tenant_name=found.tenant.name),
        verb=_("Make due again"),
        back=reverse("ops-invoice", args=[pk]),
        lines=(_("What was written off and not received since is owed again, and dunning goes on."),),
        hint=_("Visible to other operators."),
    )
    return confirm_action(request, step, act)


def _find_invoice(pk: str) -> Invoice:
    rows = Invoice.objects.select_related("period", "tenant")
    return find_row(rows, pk, _("Invoice"), fix=_("Select it from the list of invoices."))
