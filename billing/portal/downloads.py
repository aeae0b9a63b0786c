"""What is taken away as a file: tables as CSV, safe to open in a spreadsheet, bundles of invoices, and papers."""

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import cast

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

from billing.models import Invoice
from billing.services import bundles
from billing.services.papers.keeping import Handed

FORMULA = ("=", "+", "-", "@", "\t", "\r")
AT_ONCE = 1_000_000  # bytes
NUMBER = re.compile(r"[+-]?[0-9.,]+")


def safe(value: object) -> object:
    """Return a cell's value; text that a spreadsheet would run as a formula gets an apostrophe."""
    if isinstance(value, str) and value.startswith(FORMULA) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def table(name: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    """Answer with a table as CSV under a file name; read at once, while the tenant's wall is open."""
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(heads)
    writer.writerows([safe(cell) for cell in row] for row in rows)
    answer = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return answer


def bundle(invoice: Invoice) -> HttpResponseBase:
    """Answer with an invoice's bundle; a large one is read and sent piece by piece."""
    made = bundles.bundle(invoice)
    whole = made.whole(most=AT_ONCE)
    answer = HttpResponse(whole) if whole is not None else StreamingHttpResponse(iter(made))
    answer["Content-Type"] = "application/json"
    answer["Content-Disposition"] = f'attachment; filename="{bundles.file_name(invoice)}"'
    return answer


def paper(request: HttpRequest, handed: Handed) -> HttpResponse:
    """Answer with a paper; whoever has it already is told so."""
    answer = HttpResponse(handed.pdf, content_type="application/pdf")
    answer["Content-Disposition"] = f'attachment; filename="{handed.name}"'
    answer["ETag"] = f'"{handed.sha256}"'
    told = get_conditional_response(request, etag=answer["ETag"], response=answer)
    return cast("HttpResponse", told)
