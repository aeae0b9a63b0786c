"""One invoice of a tenant as operators see it: its lines, what is left of each, and giving some of it back."""

import re
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from billing.domain.crediting import Left
from billing.domain.money import Money, NotAnAmount, minor_of
from billing.models import Invoice
from billing.portal.invoices import Row, lines_of, month_words
from billing.services import crediting
from broker.portal.operations import ASKS, OpsRequest, page
from tenants.portal.acts import MOST, ops_call
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_staff

FIELD = re.compile(r"line-([0-9]{1,9})", re.ASCII)
ALL = "all"  # the button that gives back whatever is left


@dataclass(frozen=True)
class Line:
    """A line, what is left of it, and what was typed beside it."""

    row: Row
    left: Left
    most: str  # that can be given back of it
    typed: str


@ASKS
@page("invoice")
def invoice(request: OpsRequest, pk: str) -> HttpResponse:
    """Show an invoice; a POST gives back the amounts that were typed, or all that is left."""
    with as_staff():
        found = Invoice.objects.select_related("period", "tenant").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no invoice {pk!r}.", fix="Look for it in the ledger.")
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            note = crediting.credit(
                found,
                wanted=None if ALL in request.POST else _typed(request, found.currency),
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
    left = {line.n: line for line in crediting.left(invoice)}
    lines = [
        Line(
            row,
            left[row.line.n],
            most=str(Money(left[row.line.n].left, invoice.currency)),
            typed=request.POST.get(f"line-{row.line.n}", ""),
        )
        for row in lines_of(invoice)
    ]
    return {
        "invoice": invoice,
        "month": month_words(invoice),
        "lines": lines,
        "left": sum(line.left.left for line in lines),
        "creditable": invoice.status in crediting.CREDITABLE,
        "notes": list(invoice.credit_notes.order_by("-issued_at", "-pk")),
        "refusal": refusal,
        "reason": request.POST.get("reason", ""),
        "calls": [
            ops_call("Its lines", f"ops/invoices/{invoice.pk}/lines", limit=MOST),
            ops_call("What was given back of it", "ops/credit-notes", invoice=invoice.pk, limit=MOST),
        ],
    }
