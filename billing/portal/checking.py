"""Checking an invoice: its bundle, the program that recomputes it, and that program's findings as a page."""

from functools import cache
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.portal import calls, downloads
from billing.portal.invoices import invoice_of
from billing.portal.pages import PageRequest, page
from billing.services import bundles
from billing.verify import verify

WHILE_ONE_WAITS = 16_000_000  # bytes of a bundle, some two seconds


@require_GET
def program(request: HttpRequest) -> HttpResponse:
    """Hand out the program; whoever was given a bundle need not be known here."""
    answer = HttpResponse(source(), content_type="text/x-python; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="verify.py"'
    return answer


@cache
def source() -> bytes:
    return Path(verify.__file__).read_bytes()


@require_GET
@page("billing.read")
def bundle(request: PageRequest, pk: str) -> Any:
    """Send it whole, or as a stream."""
    return downloads.bundle(invoice_of(request, pk))


@require_GET
@page("billing.read")
def check(request: PageRequest, pk: str) -> HttpResponse:
    """Make the bundle now, let the program check it, and show what it says."""
    found = invoice_of(request, pk)
    raw = bundles.bundle(found).whole(most=WHILE_ONE_WAITS)
    context = {
        "invoice": found,
        "month": found.month,
        "report": verify.check(raw) if raw is not None else None,
        "file_name": bundles.file_name(found),
        "now": request.now,
        "call": calls.get(f"/invoices/{found.pk}/bundle"),
    }
    return render(request, "billing/invoice_check.html", context)
