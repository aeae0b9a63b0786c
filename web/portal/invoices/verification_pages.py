"""Verification of an invoice: its bundle, the verify program, and the program's findings."""

from functools import cache
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.services.documents import invoice_bundles, stored_bundles
from billing.verify import verify
from web.http import downloads
from web.portal import api_examples
from web.portal.invoices.invoice_pages import find_invoice
from web.portal.page_context import PageRequest, tenant_page

MAX_CHECKED_BYTES = 16_000_000  # bytes of a bundle; takes about two seconds


@require_GET
def download_program(request: HttpRequest) -> HttpResponse:
    """Download the verify program; needs no sign-in."""
    answer = HttpResponse(program_source(), content_type="text/x-python; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="verify.py"'
    return answer


@cache
def program_source() -> bytes:
    return Path(verify.__file__).read_bytes()


@tenant_page("billing.read")
def download_bundle(request: PageRequest, pk: str) -> Any:
    """Download the bundle, streamed if it is large."""
    return downloads.bundle_response(find_invoice(request, pk))


@tenant_page("billing.read")
def show_verification(request: PageRequest, pk: str) -> HttpResponse:
    """Build the bundle, run the verify program on it, and show its report."""
    found = find_invoice(request, pk)
    stored = stored_bundles.read_stored_bundle(found)
    raw = stored if stored is not None else invoice_bundles.build_bundle(found).whole(most=MAX_CHECKED_BYTES)
    context = {
        "invoice": found,
        "month": found.month,
        "report": verify.check(raw) if raw is not None else None,
        "file_name": invoice_bundles.bundle_file_name(found),
        "now": request.now,
        "call": api_examples.curl_get(f"/invoices/{found.pk}/bundle"),
    }
    return render(request, "invoices/verification.html", context)
