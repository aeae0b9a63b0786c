"""Invoices of all tenants, for operators, with crediting of their lines."""

import re
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain import tax
from billing.domain.credit_notes import LineCreditLimit
from billing.domain.money import InvalidAmount, Money, parse_amount
from billing.domain.tax import TaxTreatment
from billing.models import CreditNote, Dispute, DisputeStatus, Invoice, InvoiceStatus, Payment, PaymentStatus
from billing.services.invoicing import credit_notes
from billing.services.ledger import ledger_balances
from billing.services.payments.refunds.refund_submission import REFUND_TRANSACTIONS
from tenants.services.errors import InvalidValue
from tenants.services.rls import staff_scope
from web.portal.actions import API_PAGE_SIZE, ListPage, list_page, operator_api_call
from web.portal.invoices.invoice_pages import InvoiceLineRow, invoice_line_rows
from web.portal.operators.list_specs import ListState, ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    form_page,
    operator_page,
    parse_seen_amount,
)

LINE_FIELD = re.compile(r"line-([0-9]{1,9})", re.ASCII)
STATE_FILTERS = (
    InvoiceStatus.DRAFT,
    InvoiceStatus.FINALIZED,
    InvoiceStatus.PARTIALLY_PAID,
    InvoiceStatus.PAID,
    InvoiceStatus.UNCOLLECTIBLE,
    InvoiceStatus.VOID,
)
MOST_DISPUTES = 20


def _invoice_cells(each: Invoice) -> tuple[object, ...]:
    amounts = (csv_money(minor, each.currency) for minor in (each.subtotal, each.tax, each.total, each.due))
    return (
        *(each.pk, str(each) if each.number else "", each.status, each.period.label, each.tenant_id, each.tenant.name),
        *(csv_time(each.finalized_at), csv_time(each.due_at), csv_time(each.paid_at), each.treatment, each.currency),
        *amounts,
    )


INVOICE_LIST = OperatorList(
    name="invoices",
    heads=(
        "invoice number status month tenant tenant_name finalized_at due_at paid_at treatment currency "
        "subtotal tax total due"
    ),
    cells=_invoice_cells,
    tenant="tenant_id",
    at="period__span__startswith",
    states=(
        ListState("", gettext_lazy("All")),
        *(ListState(each.value, each.label.capitalize(), Q(status=each)) for each in STATE_FILTERS),
    ),
    search=("series", "tenant__name", "pk"),
    sums=(
        ListSum(gettext_lazy("Total"), "total"),
        ListSum(gettext_lazy("VAT"), "tax"),
        ListSum(gettext_lazy("Settled without payment"), "settled"),
    ),
)


CREDIT_WARNING = gettext_lazy(
    "The invoice itself does not change. The credit note gets its own number and cannot be revoked. The amount due"
    " is reduced first; the paid part goes to the tenant's balance, which pays the next invoice first."
)
TENANT_SEES_REASON = gettext_lazy("Visible to the tenant on the invoice and in the audit log.")


@dataclass(frozen=True)
class CreditableInvoiceLine:
    """An invoice line, its creditable amount, and what was typed beside it."""

    row: InvoiceLineRow
    limit: LineCreditLimit
    max_amount: str  # the creditable amount, formatted
    typed: str


@operator_page("invoices")
def list_invoices(request: OperatorRequest) -> Any:
    """List the invoices of all tenants, latest months first, optionally of one state."""
    lists = read_lists(request, INVOICE_LIST)
    rows = Invoice.objects.select_related("period", "tenant").order_by("-period__label", "tenant__name", "pk")
    if wants_csv(request):
        return lists.csv((INVOICE_LIST, lambda: rows))
    key, state = lists.filter.tenant_id, lists.filter.state
    context = {
        "listing": lists.read(INVOICE_LIST, rows),
        "filter": lists.count_states(INVOICE_LIST, rows),
        "owed": ledger_balances.amounts_owed(key) if key else ledger_balances.amounts_owed_by_all(),
        "calls": [
            operator_api_call(
                _("Invoices of all tenants"), "ops/invoices", status=state, tenant=key, limit=API_PAGE_SIZE
            ),
            operator_api_call(
                _("Credit notes of all tenants"), "ops/credit-notes", tenant=key, sort="-id", limit=API_PAGE_SIZE
            ),
        ],
    }
    return render(request, "operators/invoicing/invoices.html", context)


@operator_page("invoice", methods=SAFE_OR_POST)
def credit_invoice(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show an invoice; a POST credits the typed amounts."""
    found = _find_invoice(pk)

    def credit() -> str:
        note = credit_notes.issue_credit_note(
            found,
            wanted=_typed_amounts(request, found.currency),
            seen=parse_seen_amount(request.POST.get("seen", "")),
            why=request.POST.get("reason", ""),
            actor=request.actor,
            now=request.now,
        )
        return _("{note}: {amount} credited.").format(note=note, amount=Money(note.total, note.currency))

    return form_page(
        request,
        "operators/invoicing/invoice.html",
        lambda _: build_credit_page(request, found),
        credit,
        back=reverse("ops-invoice", args=[pk]),
    )


@operator_page("invoice", methods=SAFE_OR_POST)
def credit_whole_invoice(request: OperatorRequest, pk: str) -> HttpResponse:
    """Ask for confirmation, then credit all that is left of an invoice."""
    found = _find_invoice(pk)
    with staff_scope():
        left = sum(line.remaining for line in credit_notes.creditable_lines(found))

    def act(why: str) -> str:
        seen = parse_seen_amount(request.GET.get("seen", ""))
        note = credit_notes.issue_credit_note(
            found, wanted=None, seen=seen, why=why, actor=request.actor, now=request.now
        )
        return _("{note}: {amount} credited.").format(note=note, amount=Money(note.total, note.currency))

    step = Confirmation(
        title=_("Credit the remaining {amount} of {found} of {tenant_name}?").format(
            amount=Money(left, found.currency), found=found, tenant_name=found.tenant.name
        ),
        verb=_("Credit everything"),
        back=reverse("ops-invoice", args=[pk]),
        lines=(str(CREDIT_WARNING),),
        danger=True,
        hint=str(TENANT_SEES_REASON),
    )
    return confirm_action(request, step, act)


def _find_invoice(pk: str) -> Invoice:
    rows = Invoice.objects.select_related("period", "tenant")
    return find_row(rows, pk, _("Invoice"), fix=_("Select it from the list of invoices."))


def _typed_amounts(request: OperatorRequest, currency: str) -> dict[int, int]:
    """Return the typed amounts by line number, or raise InvalidValue."""
    try:
        wanted = {
            int(field[1]): parse_amount(text, currency)
            for name, text in request.POST.items()
            if (field := LINE_FIELD.fullmatch(name)) and isinstance(text, str) and text.strip()
        }
    except InvalidAmount as error:
        raise InvalidValue("lines", str(error), fix=_("Enter amounts such as 12.50, or leave a line empty.")) from error
    if not wanted:
        raise InvalidValue("lines", _("No amount was entered."), fix=_("Enter the amount to credit."))
    return wanted


@dataclass(frozen=True, slots=True)
class InvoiceCreditPage:
    """One invoice of a tenant, with what of each line can be credited."""

    invoice: Invoice
    listing: ListPage
    lines: list[CreditableInvoiceLine]
    limits: dict[int, LineCreditLimit]  # of all lines, also those on other pages of the list
    refundable_payment: Payment | None
    disputes: list[Dispute]
    credit_notes: list[CreditNote]

    credit_warning = CREDIT_WARNING
    tenant_sees_reason = TENANT_SEES_REASON

    @property
    def remaining(self) -> int:
        return sum(line.remaining for line in self.limits.values())

    @property
    def credited_minor(self) -> int:
        return sum(line.credited for line in self.limits.values())

    @property
    def untaxed_reason(self) -> str:
        """Return why no VAT is owed; empty if it is."""
        return tax.TREATMENT_TEXTS[TaxTreatment(self.invoice.treatment)]

    @property
    def creditable(self) -> bool:
        return self.invoice.status in credit_notes.CREDITABLE

    @property
    def calls(self) -> list[dict[str, str]]:
        return [
            operator_api_call(_("Invoice lines"), f"ops/invoices/{self.invoice.pk}/lines", limit=API_PAGE_SIZE),
            operator_api_call(_("Credit notes"), "ops/credit-notes", invoice=self.invoice.pk, limit=API_PAGE_SIZE),
        ]


def build_credit_page(request: OperatorRequest, invoice: Invoice) -> InvoiceCreditPage:
    """Read one page of an invoice's lines, and what can be credited."""
    shown = list_page(request, invoice_line_rows(invoice))
    limits = {line.n: line for line in credit_notes.creditable_lines(invoice)}
    open_ = Dispute.objects.filter(invoice=invoice, status=DisputeStatus.OPEN)
    lines = []
    for row in shown.rows:
        limit = limits.get(row.line.n) or LineCreditLimit(
            row.line.n, row.line.minor, 0
        )  # a draft may have changed meanwhile
        typed = request.POST.get(f"line-{row.line.n}", "")
        lines.append(CreditableInvoiceLine(row, limit, str(Money(limit.remaining, invoice.currency)), typed=typed))
    return InvoiceCreditPage(
        invoice=invoice,
        listing=shown,
        lines=lines,
        limits=limits,
        refundable_payment=_refundable_payment(invoice),
        disputes=list(open_.select_related("line").order_by("line__n")[:MOST_DISPUTES]),
        credit_notes=list(invoice.credit_notes.order_by("-issued_at", "-pk")),
    )


def _refundable_payment(invoice: Invoice) -> Payment | None:
    """Return the payment that can be refunded to its payment card, or was."""
    paid = invoice.payments.filter(status=PaymentStatus.SUCCEEDED).first()
    if paid is None or not (REFUND_TRANSACTIONS.uses_current_gateway(paid) or paid.sent_back.exists()):
        return None
    return paid
