"""Invoices: the list, one with its lines, and the drawer that says how a line came about."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import F, Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from billing.domain.disputing import undisputed
from billing.domain.money import Money, decimal_string, fixed_point
from billing.domain.stripe_events import GATEWAY
from billing.models import (
    BalanceDraw,
    CreditNote,
    Dispute,
    DisputeStatus,
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
from billing.portal import calls, cost_allocation, downloads, explained, taxed
from billing.portal.pages import PageRequest, page
from billing.services.bundles import file_name
from billing.services.crediting import CREDITABLE
from billing.services.disputes import outcome, window
from billing.services.ledger import books
from billing.services.papers.lines import told
from billing.services.payments import opening
from billing.services.payments.opening import NotPayable
from billing.services.payments.standing import Standing, Stands, stands
from tenants.services.permissions import require
from tenants.services.refusals import Missing

DISPUTES = 20  # of those that are over, how many a page shows
LIST_HEADS = [
    "id",
    "month",
    "number",
    "status",
    "subtotal",
    "tax",
    "total",
    "settled",
    "due",
    "currency",
    "finalized_at",
    "paid_at",
]
LINE_HEADS = ["n", "project", "offering", "price_class", "leases", "unit_seconds", "price_per_hour",
              "amount", "tax", "currency"]  # fmt: skip


@require_GET
@page("billing.read")
def invoices(request: PageRequest) -> HttpResponse:
    require(request.roles, "billing.read")  # of the whole tenant: an invoice tells of every project
    listed = list(
        Invoice.objects.filter(tenant=request.tenant).select_related("period").order_by("-period__span")
    )
    if request.GET.get("format") == "csv":
        return downloads.table("invoices", LIST_HEADS, [_cells(each) for each in listed])
    context = {
        "invoices": listed,
        "taxed": any(each.treatment for each in listed),
        "owed": books.owed(request.tenant.pk),
        "balance": books.balance(request.tenant.pk, request.tenant.currency),
        "draft": next((each for each in listed if each.status == InvoiceStatus.DRAFT), None),
        "tenant": request.tenant,
        "currency": request.tenant.currency,
        "csv": f"{request.path}?format=csv",
        "now": request.now,
        "call": calls.get("/invoices?limit=500"),
        "call_balance": calls.get("/balance"),
    }
    return render(request, "billing/invoices.html", context)


def _cells(invoice: Invoice) -> list[str]:
    """Return an invoice as a row of the file, as LIST_HEADS names it."""
    amounts = (invoice.subtotal, invoice.tax, invoice.total, invoice.settled, invoice.due)
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
class Row:
    """One line as it is shown."""

    line: InvoiceLine
    what: str
    sub: str
    nano_per_hour: int | None
    url: str
    less: tuple[str, ...] = ()  # what the month takes off it


@require_GET
@page("billing.read")
def invoice(request: PageRequest, pk: str) -> HttpResponse:
    found = invoice_of(request, pk)
    rows = lines_of(found)
    if request.GET.get("format") == "csv":
        return downloads.table(f"invoice-{found}".replace(" ", "-"), LINE_HEADS, cells(found, rows))
    asked = request.GET.get("line", "")
    at = next((i for i, row in enumerate(rows) if str(row.line.n) == asked), None)
    path = f"/invoices/{found.pk}"
    money, notes = stands(found), list(found.credit_notes.order_by("-issued_at", "-pk"))
    draw = BalanceDraw.objects.filter(invoice=found).first() if found.settled else None
    grants = paid_by_grants(found) if found.settled else []
    context: dict[str, Any] = {
        "invoice": found,
        "money": money,
        "payment": money.payment,
        "marks": marks(money),
        "card_wanted": card_wanted(money),
        "may_pay": may_settle(request),
        "month": found.month,
        **taxed.told(found, request.tenant),
        "rows": rows,
        "seconds": sum(row.line.unit_seconds for row in rows),
        "leases": sum(row.line.leases for row in rows),
        "history": history(found, money, notes, draw, grants),
        "notes": notes,
        **disputed(found, money, request, str(rows[at].line.n) if at is not None else ""),
        "credited": sum(note.total for note in notes),
        "draw": draw,
        "grants": grants,
        "granted": sum(minor for _, minor in grants),
        "to_grants": sum(note.to_grants for note in notes),
        "tenant": request.tenant,
        "csv": f"{request.path}?format=csv",
        "close": request.path,
        "now": request.now,
        "call": calls.get(path),
        "call_lines": calls.get(f"{path}/lines?limit=500"),
        "call_bundle": calls.get(f"{path}/bundle"),
        "call_pdf": calls.get(f"{path}/pdf"),
        "call_focus": calls.get(f"{path}/exports/focus"),
        "file_name": file_name(found),
        "call_notes": calls.get(f"/credit-notes?invoice={found.pk}&limit=500"),
        "call_disputes": calls.get(f"/disputes?invoice={found.pk}&limit=500"),
        "call_pay": calls.post(f"{path}/pay", {}) if money.payable else "",
    }
    context |= cost_allocation.told(request, found)
    if at is not None:
        may_ask = context["may_pay"] and context.get("may_dispute")
        context |= {
            "drawer": explained.opened(rows[at].line),
            "row": rows[at],
            "at": at + 1,
            "previous": rows[at - 1].url if at else "",
            "next": rows[at + 1].url if at + 1 < len(rows) else "",
            "call_explain": calls.get(f"{path}/lines/{rows[at].line.n}/explain"),
            "call_dispute": calls.post("/disputes", example(found, rows[at])) if may_ask else "",
        }
    return render(request, "billing/invoice.html", context)


def disputed(invoice: Invoice, money: Stands, request: PageRequest, line: str) -> dict[str, Any]:
    """Return its disputes, the latest first, what becomes of their money, and whether the line can be disputed now.

    Those that there are stay to be seen where no more can be opened. One query.
    """
    if invoice.number is None:
        return {"line_disputes": []}
    until = window.closes_at(invoice)
    of_it = Dispute.objects.filter(invoice=invoice).order_by("-opened_at", "-pk")
    latest = of_it.exclude(status=DisputeStatus.OPEN).values("pk")[: DISPUTES + 1]
    shown = of_it.filter(Q(status=DisputeStatus.OPEN) | Q(pk__in=latest))
    rows = list(window.with_left(shown).select_related("line", "credit_note"))
    open_ = [each for each in rows if each.status == DisputeStatus.OPEN]
    over = [each for each in rows if each.status != DisputeStatus.OPEN]
    held = sum(max(each.held, 0) for each in open_)
    paying = money.how in (Standing.PENDING, Standing.STUCK)
    return {
        "line_disputes": [
            (each, outcome.given(each.credit_note) if each.credit_note else "")
            for each in [*open_, *over[:DISPUTES]]
        ],
        "more_disputes": len(over) > DISPUTES,
        "in_question": held,
        "undisputed": undisputed(invoice.due, [held]),
        "awaited": outcome.awaited(invoice, held, paying=paying) if held else "",
        "dispute_hint": outcome.hint(invoice, paying=paying),
        "dispute_until": window.last_day(until, ZoneInfo(invoice.period.time_zone)) if until else None,
        "may_dispute": until is not None and request.now < until and invoice.status in CREDITABLE,
        "line_in_question": next((each for each in open_ if str(each.line.n) == line), None),
    }


def example(invoice: Invoice, row: Row) -> dict[str, Any]:
    """Return the body that disputes a whole line."""
    return {"invoice": invoice.pk, "lines": [{"n": row.line.n}], "reason": "the card was down"}


@require_POST
@page("billing.read")
def pay(request: PageRequest, pk: str) -> HttpResponse:
    """Ask for the money; the page one comes back to shows what becomes of it."""
    require(request.roles, "billing.write", ())
    try:
        opening.pay(invoice_of(request, pk), actor=request.actor, now=request.now)
    except NotPayable as refusal:  # somebody was faster, or the page was old
        messages.warning(request, f"{refusal.detail} {refusal.fix.text}")
    return redirect("invoice", pk=pk)


def invoice_of(request: PageRequest, pk: str) -> Invoice:
    require(request.roles, "billing.read")
    found = Invoice.objects.filter(tenant=request.tenant, pk=pk).select_related("period").first()
    if found is None:
        raise Missing("There is no such invoice here.", fix="Look it up in the list of invoices.")
    return found


def marks(money: Stands) -> dict[str, Any]:
    """Return disputes and refunds of its payments; only Stripe's have any, and others cost no query."""
    ids = [each.pk for each in money.attempts if each.gateway == GATEWAY]
    if not ids:
        return {}
    disputes = PaymentDispute.objects.filter(payment__in=ids).order_by("opened_at", "pk")
    refunds = PaymentRefund.objects.filter(payment__in=ids).order_by("made_at", "pk")
    return {"disputes": list(disputes), "refunds": list(refunds)}


def card_wanted(money: Stands) -> bool:
    """Tell whether the latest attempt failed for want of a card that can be charged."""
    return money.how is Standing.DECLINED and bool(money.attempts) and money.attempts[0].gateway == GATEWAY


def may_settle(request: PageRequest) -> bool:
    """Tell whether the visitor may pay: invoices are the tenant's, so the right must be on all of it."""
    return request.roles.may("billing.write", ())


def lines_of(invoice: Invoice) -> list[Row]:
    """Return the lines with the names of what they charge for; four queries."""
    return [
        Row(
            line=each.line,
            what=each.what,
            sub=" · ".join(filter(None, (each.project, each.terms))),
            nano_per_hour=each.nano_per_hour,
            url=f"{reverse('invoice', args=[invoice.pk])}?line={each.line.n}",
            less=each.less,
        )
        for each in told(invoice)
    ]


def paid_by_grants(invoice: Invoice) -> list[tuple[Grant, int]]:
    """Return what each grant paid of an invoice, in the order in which they were drawn; one query."""
    paid: dict[Grant, int] = {}
    order = "grant__priority", F("grant__expires_at").asc(nulls_last=True), "grant"
    for each in GrantDraw.objects.filter(invoice=invoice).select_related("grant").order_by(*order):
        paid[each.grant] = paid.get(each.grant, 0) + each.minor
    return list(paid.items())


def history(
    invoice: Invoice,
    money: Stands,
    notes: Sequence[CreditNote],
    draw: BalanceDraw | None,
    grants: Sequence[tuple[Grant, int]],
) -> list[tuple[str, str, datetime]]:
    """Return what has happened to the invoice and its money, newest first: (state, words, when)."""
    if invoice.finalized_at is None:
        return [("draft", "Brought up to the charges there are", invoice.refreshed_at)]
    closed = invoice.period.closed_at or invoice.finalized_at
    settled = "nothing was left to be paid" if invoice.settled else "nothing was due"
    nothing = [("paid", f"Paid: {settled}", invoice.paid_at)] if invoice.paid_at and not money.payment else []
    done = DunningStep.objects.filter(invoice=invoice).order_by("n") if invoice.due_at else ()
    steps = [reminded(step, invoice) for step in done]
    since = [
        *nothing,
        *steps,
        *(attempt(each) for each in money.attempts),
        *(credited(note) for note in notes),
    ]
    return [
        *sorted(since, key=lambda entry: entry[2], reverse=True),
        *(
            [("paid", f"{Money(draw.minor, invoice.currency)} drawn from the balance", draw.at)]
            if draw
            else []
        ),
        *(
            ("paid", f"{Money(minor, invoice.currency)} paid by credit: {grant.reason}", invoice.finalized_at)
            for grant, minor in grants
        ),
        ("finalized", f"Finalized as {invoice}; it never changes again", invoice.finalized_at),
        ("closing", "Month closed: every second of it is charged", closed),
    ]


def reminded(step: DunningStep, invoice: Invoice) -> tuple[str, str, datetime]:
    """Say what was done because it was not paid in time."""
    words = {
        "remind": "a reminder was written",
        "suspend": "until it is paid nothing new begins",
        "end": "what ran was ended",
    }
    due = Money(step.minor, invoice.currency)
    return "failed", f"Overdue, {due}: {words[step.action]}", step.done_at


def credited(note: CreditNote) -> tuple[str, str, datetime]:
    """Say what was given back, why, and where it went."""
    amount, paid = Money(note.total, note.currency), Money(note.to_balance, note.currency)
    where = f"; {paid} of it, which was paid, is on the balance" if note.to_balance else ""
    where += f"; {Money(note.to_grants, note.currency)} of it is credit again" if note.to_grants else ""
    return "paid", f"Credit note {note}: {amount} given back{where}. {note.reason}", note.issued_at


def attempt(payment: Payment) -> tuple[str, str, datetime]:
    """Say what became of an attempt to collect it."""
    asked = "collected" if payment.automatic else "paid by hand"
    words = {
        "pending": f"Being {asked}: {Money(payment.minor, payment.currency)}",
        "succeeded": f"{asked.capitalize()}: {Money(payment.minor, payment.currency)}, {payment.reference}",
        "declined": f"Declined: {payment.reason}",
        "stuck": f"Waits for a person: {payment.reason}",
    }
    return payment.status, words[payment.status], payment.settled_at or payment.stuck_at or payment.opened_at


def cells(invoice: Invoice, rows: list[Row]) -> list[list[object]]:
    return [
        [row.line.n, row.line.project_id, row.what, row.sub, row.line.leases, row.line.unit_seconds,
         "" if row.nano_per_hour is None else fixed_point(row.nano_per_hour, 9),
         decimal_string(row.line.minor, invoice.currency),
         decimal_string(row.line.tax_minor, invoice.currency), invoice.currency]
        for row in rows
    ]  # fmt: skip
