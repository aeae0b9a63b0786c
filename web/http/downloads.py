"""Responses that download a file: CSV tables, logs, invoice bundles, PDF and XML documents.

The CSV is safe to open in a spreadsheet.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain
from typing import cast

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

from billing.domain.csv_tables import render_csv
from billing.models import Invoice, JournalSettings
from billing.services.documents import invoice_bundles, stored_bundles
from billing.services.documents.document_store import PdfFile, XmlFile
from billing.services.documents.focus import focus_months
from billing.services.reports.accounting import month_exports
from broker.models import Lease
from broker.services.logs import log_pages
from tenants.services.errors import InvalidValue
from tenants.services.rls import login_role_scope

MAX_UNSTREAMED = 1_000_000  # bytes


def csv_response(name: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    """Return a CSV download; the rows are read at once, inside the tenant's transaction."""
    answer = HttpResponse("".join(render_csv(heads, rows)), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return answer


def bundle_response(invoice: Invoice) -> HttpResponseBase:
    """Return an invoice's bundle as a download; a large one is streamed."""
    whole = stored_bundles.read_stored_bundle(invoice)
    if whole is None:
        made = invoice_bundles.build_bundle(invoice)
        whole = made.whole(most=MAX_UNSTREAMED)
    answer = HttpResponse(whole) if whole is not None else StreamingHttpResponse(iter(made))
    answer["Content-Type"] = "application/json"
    answer["Content-Disposition"] = f'attachment; filename="{invoice_bundles.bundle_file_name(invoice)}"'
    return answer


def log_response(lease: Lease) -> HttpResponse:
    """Return a lease's log as a text download."""
    rows = (
        f"{each.line.at:%Y-%m-%dT%H:%M:%S.%fZ} {each.line.source:<8} {each.line.text}\n"
        for each in log_pages.iterate_lines(lease)
    )
    answer = HttpResponse("".join(rows), content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{lease.pk}.log"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def pdf_response(request: HttpRequest, handed: PdfFile) -> HttpResponse:
    """Return a PDF download, or 304 if the client has it already."""
    answer = HttpResponse(handed.pdf, content_type="application/pdf")
    answer["Content-Disposition"] = f'attachment; filename="{handed.name}"'
    answer["ETag"] = f'"{handed.sha256}"'
    conditional = get_conditional_response(request, etag=answer["ETag"], response=answer)
    return cast("HttpResponse", conditional)


def xml_response(handed: XmlFile) -> HttpResponse:
    """Return an XML download."""
    answer = HttpResponse(handed.xml, content_type="application/xml; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{handed.name}"'
    return answer


def file_response(name: str, media_type: str, content: bytes) -> HttpResponse:
    """Return a download of a file."""
    answer = HttpResponse(content, content_type=media_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def month_export_response(
    kind: str, month: str, settings: JournalSettings, *, tenant: str, days: tuple[str, str], now: datetime
) -> HttpResponseBase:
    """Return a month's file for an accountant, in a staff scope.

    A journal may be of other days. Raises JournalIncomplete if a batch cannot be made, and InvalidValue.
    """
    if kind == "journal" and any(days):
        first, last = (_parse_day(name, day) for name, day in zip(("first", "last"), days, strict=True))
        made = month_exports.export_journal(first, last, settings, tenant=tenant)
        return file_response(made.name, made.media_type, made.content)
    if kind == month_exports.FOCUS:
        with login_role_scope():
            return streamed_csv_response(f"focus-{month}.csv", focus_months.month_csv(month, tenant_id=tenant))
    made = month_exports.export_month(kind, month, settings, tenant=tenant, now=now)
    return file_response(made.name, made.media_type, made.content)


def _parse_day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidValue(name, f"{text!r} is not a day.", fix="Use a day such as 2026-10-31.") from error


def streamed_csv_response(name: str, pieces: Iterator[str]) -> HttpResponseBase:
    """Return a CSV download of unknown length: whole if short, else streamed."""
    first, held = list[str](), 0
    for piece in pieces:
        first.append(piece)
        held += len(piece)
        if held > MAX_UNSTREAMED:
            break
    whole = held <= MAX_UNSTREAMED
    answer = HttpResponse("".join(first)) if whole else StreamingHttpResponse(chain(first, pieces))
    answer["Content-Type"] = "text/csv; charset=utf-8"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
