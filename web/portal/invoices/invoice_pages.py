"""Invoice pages: the list, one invoice with its lines, and the explain drawer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import Money, decimal_string, format_fixed_point
from billing.domain.stripe_events import GATEWAY
from billing.models import (
    BalanceDraw,
    CreditNote,
    Dispute,
    DunningStep,
    Grant,
    GrantDraw,
    Invoice,
    InvoiceLine,
    InvoiceStatus,
    Payment,
    PaymentDispute,
    PaymentRefund,
)
from billing.services.documents.e_invoices.e_invoice_offers import EInvoiceOffer, offered_e_invoices
from billing.services.documents.invoice_bundles import bundle_file_name
from billing.services.documents.line_names import name_lines
from billing.services.ledger import ledger_balances
from billing.services.payments import payment_creation
from billing.services.payments.payment_creation import NotPayable
from billing.services.payments.payment_status import InvoicePaymentState, InvoicePaymentStatus, payment_status
from billing.services.tax.tax_determination import is_showback
from tenants.services.authentication import require
from tenants.services.errors import ObjectNotFound
from web.http import downloads
from web.portal import api_examples
from web.portal.invoices import cost_allocation, invoice_disputes, invoice_taxes, line_explanation
from web.portal.invoices.invoice_receipts import receipt_entries
from web.portal.page_context import POST, PageRequest, tenant_page

LIST_HEADERS = [
    "id",
    "month",
    "number",
    "status",
    "subtotal",
    "tax",
    "total",
    "settled",
    "paid",
    "due",
    "currency",
    "finalized_at",
    "paid_at",
]
LINE_HEADERS = ["n", "project", "offering", "price_class", "leases", "unit_seconds", "price_per_hour",
              "amount", "tax", "currency"]  # fmt: skip


@tenant_page("billing.read")
def list_invoices(request: PageRequest) -> HttpResponse:
    require(request.roles, "billing.read")  # of the whole tenant: an invoice covers every project
    listed = list(Invoice.objects.filter(tenant=request.tenant).select_related("period").order_by("-period__span"))
    if request.GET.get("format") == "csv":
        return downloads.csv_response("invoices", LIST_HEADERS, [_invoice_cells(each) for each in listed])
    page = InvoiceListPage(
        invoices=listed,
        owed=ledger_balances.amounts_owed(request.tenant.pk),
        balance=ledger_balances.available_balance(request.tenant.pk, request.tenant.currency),
        shown_back=is_showback(request.tenant.pk),
    )
    return render(request, "invoices/invoices.html", {"page": page})


@dataclass(frozen=True, slots=True)
class InvoiceListPage:
    """The invoices of a tenant, what it owes, and its balance."""

    invoices: list[Invoice]
    owed: list[Money]
    balance: int
    shown_back: bool  # costs are only shown, nothing is paid

    @property
    def taxed(self) -> bool:
        return any(each.treatment for each in self.invoices)

    @property
    def draft(self) -> Invoice | None:
        return next((each for each in self.invoices if each.status == InvoiceStatus.DRAFT), None)


def _invoice_cells(invoice: Invoice) -> list[str]:
    """Return an invoice as a CSV row in the order of LIST_HEADS."""
    amounts = (invoice.subtotal, invoice.tax, invoice.total, invoice.settled, invoice.paid, invoice.due)
    return [
        invoice.pk,
        invoice.period.label,
        str(invoice) if invoice.number else "",
        invoice.status,
        *(decimal_string(minor, invoice.currency) for minor in amounts),
        invoice.currency,
        *(at.isoformat() if at else "" for at in (invoice.finalized_at, invoice.paid_at)),
    ]


@dataclass(frozen=True)
class InvoiceLineRow:
    """One invoice line as the page shows it."""

    line: InvoiceLine
    title: str
    detail: str
    nano_per_hour: int | None
    url: str
    reductions: tuple[str, ...] = ()  # adjustments of the month


@tenant_page("billing.read")
def show_invoice(request: PageRequest, pk: str) -> HttpResponse:
    found = find_invoice(request, pk)
    rows = invoice_line_rows(found)
    if request.GET.get("format") == "csv":
        return downloads.csv_response(f"invoice-{found}".replace(" ", "-"), LINE_HEADERS, line_cells(found, rows))
    return render(request, "invoices/invoice.html", {"page": build_invoice_page(request, found, rows)})


@dataclass(frozen=True, slots=True)
class InvoicePage:
    """One invoice with its lines, payment, disputes and history."""

    invoice: Invoice
    payment_status: InvoicePaymentStatus
    payment_marks: dict[str, Any]
    may_pay: bool
    taxes: invoice_taxes.InvoiceTaxes
    rows: list[InvoiceLineRow]
    credit_notes: list[CreditNote]
    balance_draw: BalanceDraw | None
    grants: list[tuple[Grant, int]]
    disputes: invoice_disputes.InvoiceDisputes
    allocation: cost_allocation.CostAllocation
    e_invoice: EInvoiceOffer | None
    line_position: int  # of the line in the drawer, from 1; 0 if none is open
    drawer: line_explanation.LineExplanationPanel | None

    @property
    def card_wanted(self) -> bool:
        """Return whether the latest attempt failed because no payment card could be charged."""
        state, attempts = self.payment_status.state, self.payment_status.attempts
        return state is InvoicePaymentState.DECLINED and bool(attempts) and attempts[0].gateway == GATEWAY

    @property
    def history(self) -> list[tuple[str, str, datetime]]:
        return invoice_history(self.invoice, self.payment_status, self.credit_notes, self.balance_draw, self.grants)

    @property
    def seconds(self) -> int:
        return sum(row.line.unit_seconds for row in self.rows)

    @property
    def leases(self) -> int:
        return sum(row.line.leases for row in self.rows)

    @property
    def granted(self) -> int:
        return sum(minor for _, minor in self.grants)

    @property
    def credited(self) -> int:
        return sum(note.total for note in self.credit_notes)

    @property
    def to_grants(self) -> int:
        return sum(note.to_grants for note in self.credit_notes)

    @property
    def file_name(self) -> str:
        return bundle_file_name(self.invoice)

    @property
    def row(self) -> InvoiceLineRow | None:
        return self.rows[self.line_position - 1] if self.line_position else None

    @property
    def previous(self) -> str:
        return self.rows[self.line_position - 2].url if self.line_position > 1 else ""

    @property
    def next(self) -> str:
        return self.rows[self.line_position].url if 0 < self.line_position < len(self.rows) else ""

    @property
    def line_in_question(self) -> Dispute | None:
        """Return the open dispute of the line in the drawer."""
        return self.disputes.open_on(self.row.line) if self.row else None

    @property
    def call_dispute(self) -> str:
        """Return the API call that disputes the open line, if the visitor may."""
        if self.row is None or not (self.may_pay and self.disputes.may_open):
            return ""
        return api_examples.curl_post("/disputes", dispute_example(self.invoice, self.row))


def build_invoice_page(request: PageRequest, invoice: Invoice, rows: list[InvoiceLineRow]) -> InvoicePage:
    """Read what an invoice page shows, with the line it opens."""
    wanted = request.GET.get("line", "")
    at = next((i for i, row in enumerate(rows, 1) if str(row.line.n) == wanted), 0)
    money = payment_status(invoice)
    return InvoicePage(
        invoice=invoice,
        payment_status=money,
        payment_marks=payment_marks(money),
        may_pay=may_pay(request),
        taxes=invoice_taxes.read_invoice_taxes(invoice, request.tenant),
        rows=rows,
        credit_notes=list(invoice.credit_notes.order_by("-issued_at", "-pk")),
        balance_draw=BalanceDraw.objects.filter(invoice=invoice).first() if invoice.settled else None,
        grants=paid_by_grants(invoice) if invoice.settled else [],
        disputes=invoice_disputes.read_invoice_disputes(invoice, money, now=request.now),
        allocation=cost_allocation.read_cost_allocation(request, invoice),
        e_invoice=offered_e_invoices(invoice),
        line_position=at,
        drawer=line_explanation.build_line_panel(rows[at - 1].line) if at else None,
    )


def dispute_example(invoice: Invoice, row: InvoiceLineRow) -> dict[str, Any]:
    """Return an example request body that disputes a whole line."""
    return {"invoice": invoice.pk, "lines": [{"n": row.line.n}], "reason": "the GPU was down"}


@tenant_page("billing.read", methods=POST)
def pay_invoice(request: PageRequest, pk: str) -> HttpResponse:
    """Start collecting an invoice's payment, then show the invoice again."""
    require(request.roles, "billing.write", ())
    try:
        payment_creation.open_payment(find_invoice(request, pk), actor=request.actor, now=request.now)
    except NotPayable as refusal:  # paid meanwhile, or the page was stale
        messages.warning(request, f"{refusal.detail} {refusal.fix.text}")
    return redirect("invoice", pk=pk)


def find_invoice(request: PageRequest, pk: str) -> Invoice:
    require(request.roles, "billing.read")
    found = Invoice.objects.filter(tenant=request.tenant, pk=pk).select_related("period").first()
    if found is None:
        raise ObjectNotFound(_("This invoice does not exist."), fix=_("Choose one from the list of invoices."))
    return found


def payment_marks(money: InvoicePaymentStatus) -> dict[str, Any]:
    """Return chargebacks and refunds of the invoice's payments.

    Only Stripe's payments have any; others cost no query.
    """
    ids = [each.pk for each in money.attempts if each.gateway == GATEWAY]
    if not ids:
        return {}
    disputes = PaymentDispute.objects.filter(payment__in=ids).order_by("opened_at", "pk")
    refunds = PaymentRefund.objects.filter(payment__in=ids).order_by("made_at", "pk")
    return {"disputes": list(disputes), "refunds": list(refunds)}


def may_pay(request: PageRequest) -> bool:
    """Return whether the visitor may pay; it takes the permission on the whole tenant."""
    return request.roles.may("billing.write", ())


def invoice_line_rows(invoice: Invoice) -> list[InvoiceLineRow]:
    """Return the invoice's lines with the names of what they charge for; four queries."""
    return [
        InvoiceLineRow(
            line=each.line,
            title=each.title,
            detail=" · ".join(filter(None, (each.project, each.terms))),
            nano_per_hour=each.nano_per_hour,
            url=f"{reverse('invoice', args=[invoice.pk])}?line={each.line.n}",
            reductions=each.reductions,
        )
        for each in name_lines(invoice)
    ]


def paid_by_grants(invoice: Invoice) -> list[tuple[Grant, int]]:
    """Return what each grant paid of an invoice, in drawing order; one query."""
    paid: dict[Grant, int] = {}
    order = "grant__priority", F("grant__expires_at").asc(nulls_last=True), "grant"
    for each in GrantDraw.objects.filter(invoice=invoice).select_related("grant").order_by(*order):
        paid[each.grant] = paid.get(each.grant, 0) + each.minor
    return list(paid.items())


def invoice_history(
    invoice: Invoice,
    money: InvoicePaymentStatus,
    notes: Sequence[CreditNote],
    draw: BalanceDraw | None,
    grants: Sequence[tuple[Grant, int]],
) -> list[tuple[str, str, datetime]]:
    """Return the invoice's history, newest first, as (state, words, when)."""
    if invoice.finalized_at is None:
        return [("draft", _("Updated"), invoice.refreshed_at)]
    closed = invoice.period.closed_at or invoice.finalized_at
    settled = _("no amount due") if invoice.settled else _("nothing was due")
    received = receipt_entries(invoice)
    nothing = (
        [("paid", _("Paid: {settled}").format(settled=settled), invoice.paid_at)]
        if invoice.paid_at and not money.payment and not received
        else []
    )
    done = DunningStep.objects.filter(invoice=invoice).order_by("n") if invoice.due_at else ()
    steps = [dunning_entry(step, invoice) for step in done]
    since = [
        *nothing,
        *received,
        *steps,
        *(payment_entry(each) for each in money.attempts),
        *(credit_note_entry(note) for note in notes),
    ]
    return [
        *sorted(since, key=lambda entry: entry[2], reverse=True),
        *(
            [
                (
                    "paid",
                    _("{amount} paid from the balance").format(amount=Money(draw.minor, invoice.currency)),
                    draw.at,
                )
            ]
            if draw
            else []
        ),
        *(
            (
                "paid",
                _("{amount} paid by credits: {reason}").format(
                    amount=Money(minor, invoice.currency), reason=grant.reason
                ),
                invoice.finalized_at,
            )
            for grant, minor in grants
        ),
        ("finalized", _("Finalized as {invoice}").format(invoice=invoice), invoice.finalized_at),
        ("closing", _("Month closed"), closed),
    ]


def dunning_entry(step: DunningStep, invoice: Invoice) -> tuple[str, str, datetime]:
    """Describe a dunning step."""
    words = {
        "remind": "reminder sent",
        "suspend": _("new leases are blocked until it is paid"),
        "end": _("running leases were ended"),
    }
    due = Money(step.minor, invoice.currency)
    return "failed", _("Overdue, {due}: {action}").format(due=due, action=words[step.action]), step.done_at


def credit_note_entry(note: CreditNote) -> tuple[str, str, datetime]:
    """Describe a credit note: the amount, where it went, and why."""
    amount, paid = Money(note.total, note.currency), Money(note.to_balance, note.currency)
    where = _("; {paid} added to the balance").format(paid=paid) if note.to_balance else ""
    where += (
        _("; {amount} returned to credits").format(amount=Money(note.to_grants, note.currency))
        if note.to_grants
        else ""
    )
    return (
        "paid",
        _("Credit note {note}: {amount} credited{where}. {reason}").format(
            note=note, amount=amount, where=where, reason=note.reason
        ),
        note.issued_at,
    )


def payment_entry(payment: Payment) -> tuple[str, str, datetime]:
    """Describe a payment attempt and its outcome."""
    collected = "collected" if payment.automatic else "paid manually"
    words = {
        "pending": _("Being {collected}: {amount}").format(
            collected=collected, amount=Money(payment.minor, payment.currency)
        ),
        "succeeded": f"{collected.capitalize()}: {Money(payment.minor, payment.currency)}, {payment.reference}",
        "declined": _("Declined: {reason}").format(reason=payment.reason),
        "stuck": _("Manual action needed: {reason}").format(reason=payment.reason),
    }
    return payment.status, words[payment.status], payment.settled_at or payment.stuck_at or payment.opened_at


def line_cells(invoice: Invoice, rows: list[InvoiceLineRow]) -> list[list[object]]:
    return [
        [row.line.n, row.line.project_id, row.title, row.detail, row.line.leases, row.line.unit_seconds,
         "" if row.nano_per_hour is None else format_fixed_point(row.nano_per_hour, 9),
         decimal_string(row.line.minor, invoice.currency),
         decimal_string(row.line.tax_minor, invoice.currency), invoice.currency]
        for row in rows
    ]  # fmt: skip
