"""A bank transfer: what it paid, the invoice that its rest pays, and its reversal."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.models import BankReceipt, Invoice
from billing.models.invoices import OPEN_STATUSES
from billing.services.payments.bank_receipts import receipt_assignment, receipt_reversal
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from web.portal.actions import operator_api_call
from web.portal.operators.bank_receipts.receipt_pages import MAX_OPEN_INVOICES, RECEIPTS, ReceiptRow, receipt_row
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    form_page,
    operator_page,
)


@operator_page("bank-receipt", methods=SAFE_OR_POST)
def show_receipt(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show a bank transfer; a POST assigns what it left to an invoice."""
    found = find_receipt(pk)

    def assign() -> str:
        with staff_scope():
            invoice = Invoice.objects.filter(tenant=found.tenant_id, pk=request.POST.get("invoice", "")).first()
        if invoice is None:
            raise InvalidValue("invoice", _("The invoice was not found."), fix=_("Select one from the list."))
        receipt_assignment.assign_rest(found, invoice, actor=request.actor, now=request.now)
        return _("Assigned to invoice {invoice}.").format(invoice=invoice)

    return form_page(
        request,
        "operators/bank_receipts/receipt.html",
        lambda _: build_receipt_page(find_receipt(pk)),
        assign,
        back=reverse("ops-bank-receipt", args=[pk]),
    )


@dataclass(frozen=True, slots=True)
class BankReceiptPage:
    """One bank transfer, what it paid, and the invoices that its rest may pay."""

    row: ReceiptRow
    assignable: int
    invoices: list[Invoice]

    @property
    def calls(self) -> list[dict[str, str]]:
        receipt = self.row.receipt
        return [operator_api_call(_("Invoices paid by this transfer"), f"ops/bank-receipts/{receipt.pk}")]


def build_receipt_page(found: BankReceipt) -> BankReceiptPage:
    """Read what a receipt left, and its tenant's open invoices."""
    open_ = Invoice.objects.filter(tenant=found.tenant_id, status__in=OPEN_STATUSES, currency=found.currency)
    return BankReceiptPage(
        row=receipt_row(found),
        assignable=receipt_assignment.assignable_rest(found),
        invoices=list(open_.select_related("period").order_by("due_at", "pk")[:MAX_OPEN_INVOICES]),
    )


def find_receipt(pk: str) -> BankReceipt:
    """Return a receipt of any tenant, or raise ObjectNotFound."""
    rows: QuerySet[BankReceipt] = RECEIPTS.all()
    return find_row(rows, pk, _("Bank transfer"), fix=_("Select it from the list of bank transfers."))


@operator_page("bank-receipt", methods=SAFE_OR_POST)
def reverse_bank_receipt(request: OperatorRequest, pk: str) -> HttpResponse:
    """Ask for confirmation, then reverse a wrong or returned transfer."""
    found = find_receipt(pk)
    amount = Money(found.minor, found.currency)

    def act(why: str) -> str:
        receipt_reversal.reverse_receipt(found, why=why, actor=request.actor, now=request.now)
        return _("{amount} reversed.").format(amount=amount)

    step = Confirmation(
        title=_("Reverse the transfer of {amount} of {tenant_name}?").format(
            amount=amount, tenant_name=found.tenant.name
        ),
        verb=_("Reverse transfer"),
        back=reverse("ops-bank-receipt", args=[pk]),
        lines=(_("The invoices it paid are due again, and what it left is taken off the balance."),),
        danger=True,
        hint=_("Visible to the tenant on the invoice and in the audit log."),
    )
    return confirm_action(request, step, act)
