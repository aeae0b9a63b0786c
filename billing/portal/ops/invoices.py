"""Invoices of all tenants as operators see them: the list, and one with what is left of its lines to give back."""

import re
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from billing.domain.crediting import Left
from billing.domain.money import Money, NotAnAmount, minor_of
from billing.models import Dispute, DisputeStatus, Invoice, InvoiceStatus, Payment, PaymentStatus
from billing.portal.invoices import Row, lines_of
from billing.services import crediting
from billing.services.ledger import books
from billing.services.refunds.collecting import SENDING
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from tenants.portal.acts import MOST, ops_call, part
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_staff

FIELD = re.compile(r"line-([0-9]{1,9})", re.ASCII)
SHOWN = (InvoiceStatus.DRAFT, InvoiceStatus.FINALIZED, InvoiceStatus.PAID)
NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
MOST_DISPUTES = 20


CANNOT_BE_TAKEN_BACK = (
    "The invoice stays as it is; the note has a number of its own and cannot be taken back. What is still to be paid"
    " becomes less; what was paid goes to the tenant's balance, from which its next invoice is settled first."
)
TOLD_TO_THE_TENANT = "The tenant reads it on the invoice and in its trail."


@dataclass(frozen=True)
class Line:
    """A line, what is left of it, and what was typed beside it."""

    row: Row
    left: Left
    most: str  # that can be given back of it
    typed: str


@require_safe
@page("invoices")
def table(request: OpsRequest) -> HttpResponse:
    """Show the invoices of all tenants, the latest months first; of one state where the address says so."""
    state = request.GET.get("state", "")
    state = state if state in SHOWN else ""
    counts = dict(Invoice.objects.values_list("status").annotate(count=Count("pk")).order_by())
    rows = Invoice.objects.select_related("period", "tenant").order_by("-period__label", "tenant__name", "pk")
    rows = rows.filter(status=state) if state else rows
    here = reverse("ops-invoices")
    told = {
        "part": part(request, rows, count=counts.get(state, 0) if state else sum(counts.values())),
        "filters": [
            {"url": here, "label": "All", "count": sum(counts.values()), "current": not state},
            *(
                {
                    "url": f"{here}?state={each.value}",
                    "label": each.label,
                    "count": counts.get(each.value, 0),
                    "current": each.value == state,
                }
                for each in SHOWN
            ),
        ],
        "owed": books.owed_by_all(),
        "calls": [
            ops_call("Invoices of all tenants", "ops/invoices", status=state, limit=MOST),
            ops_call("Credit notes of all tenants", "ops/credit-notes", sort="-id", limit=MOST),
        ],
    }
    return render(request, "ops/invoices.html", told)


@ASKS
@page("invoice")
def invoice(request: OpsRequest, pk: str) -> HttpResponse:
    """Show an invoice; a POST gives back the amounts that were typed."""
    found = _invoice_of(pk)
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            note = crediting.credit(
                found,
                wanted=_typed(request, found.currency),
                seen=_seen(request.POST.get("seen", "")),
                why=request.POST.get("reason", ""),
                actor=request.actor,
                now=request.now,
            )
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            messages.success(request, f"{note}: {Money(note.total, note.currency)} given back.")
            return redirect("ops-invoice", pk=pk)
    with as_staff():
        told = _told(request, found, refusal)
        return render(request, "ops/invoice.html", told, status=refusal.status if refusal else 200)


@ASKS
@page("invoice")
def give_back(request: OpsRequest, pk: str) -> HttpResponse:
    """Ask whether all that is left of an invoice is to be given back, and do so."""
    found = _invoice_of(pk)
    with as_staff():
        left = sum(line.left for line in crediting.left(found))

    def act(why: str) -> str:
        seen = _seen(request.GET.get("seen", ""))
        note = crediting.credit(found, wanted=None, seen=seen, why=why, actor=request.actor, now=request.now)
        return f"{note}: {Money(note.total, note.currency)} given back."

    step = Step(
        title=f"Give back all {Money(left, found.currency)} that is left of {found} of {found.tenant.name}?",
        verb="Give back all of it",
        back=reverse("ops-invoice", args=[pk]),
        lines=(CANNOT_BE_TAKEN_BACK,),
        danger=True,
        hint=TOLD_TO_THE_TENANT,
    )
    return ask(request, step, act)


def _invoice_of(pk: str) -> Invoice:
    with as_staff():
        found = Invoice.objects.select_related("period", "tenant").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no invoice {pk!r}.", fix="Look for it in the list of invoices.")
    return found


def _seen(told: str) -> int:
    """Return how much had been given back when the page was shown, or raise Invalid for a form that says nothing."""
    if not NUMBER.fullmatch(told):
        raise Invalid(
            "seen", "The form does not say how much had been given back.", fix="Open the page again."
        )
    return int(told)


def _typed(request: OpsRequest, currency: str) -> dict[int, int]:
    """Return the amounts that were typed, by number of line, or raise Invalid for what is no amount."""
    try:
        wanted = {
            int(field[1]): minor_of(text, currency)
            for name, text in request.POST.items()
            if (field := FIELD.fullmatch(name)) and isinstance(text, str) and text.strip()
        }
    except NotAnAmount as odd:
        raise Invalid("lines", str(odd), fix="Type amounts such as 12.50, or leave a line empty.") from odd
    if not wanted:
        raise Invalid("lines", "Nothing was typed beside any line.", fix="Type what to give back of it.")
    return wanted


def _told(request: OpsRequest, invoice: Invoice, refusal: Refused | None) -> dict[str, Any]:
    shown = part(request, lines_of(invoice))
    every = {line.n: line for line in crediting.left(invoice)}
    open_ = Dispute.objects.filter(invoice=invoice, status=DisputeStatus.OPEN)
    lines = []
    for row in shown.rows:
        left = every.get(row.line.n) or Left(row.line.n, row.line.minor, 0)  # a draft's change meanwhile
        typed = request.POST.get(f"line-{row.line.n}", "")
        lines.append(Line(row, left, most=str(Money(left.left, invoice.currency)), typed=typed))
    return {
        "invoice": invoice,
        "part": shown,
        "lines": lines,
        "left": sum(line.left for line in every.values()),
        "seen": sum(line.credited for line in every.values()),
        "cannot_be_taken_back": CANNOT_BE_TAKEN_BACK,
        "told_to_the_tenant": TOLD_TO_THE_TENANT,
        "creditable": invoice.status in crediting.CREDITABLE,
        "paid": _sent_back_from(invoice),
        "disputes": list(open_.select_related("line").order_by("line__n")[:MOST_DISPUTES]),
        "notes": list(invoice.credit_notes.order_by("-issued_at", "-pk")),
        "refusal": refusal,
        "reason": request.POST.get("reason", ""),
        "calls": [
            ops_call("Its lines", f"ops/invoices/{invoice.pk}/lines", limit=MOST),
            ops_call("What was given back of it", "ops/credit-notes", invoice=invoice.pk, limit=MOST),
        ],
    }


def _sent_back_from(invoice: Invoice) -> Payment | None:
    """Return the payment of which something can go back to its card, or did."""
    paid = invoice.payments.filter(status=PaymentStatus.SUCCEEDED).first()
    if paid is None or not (SENDING.asks_here(paid) or paid.sent_back.exists()):
        return None
    return paid
