"""What is taken away as a file: tables as CSV, safe to open in a spreadsheet, bundles of invoices, and papers."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import cast

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response

from billing.domain.sheets import written
from billing.models import Invoice
from billing.services import bundles
from billing.services.papers.keeping import Handed

AT_ONCE = 1_000_000  # bytes


def table(name: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    """Answer with a table as CSV under a file name; read at once, while the tenant's wall is open."""
    answer = HttpResponse("".join(written(heads, rows)), content_type="text/csv; charset=utf-8")
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


def sheet(name: str, pieces: Iterator[str]) -> HttpResponseBase:
    """Answer with a table that may be long: whole if it is short, else piece by piece."""
    first, held = list[str](), 0
    for piece in pieces:
        first.append(piece)
        held += len(piece)
        if held > AT_ONCE:
            break
    whole = held <= AT_ONCE
    answer = HttpResponse("".join(first)) if whole else StreamingHttpResponse(chain(first, pieces))
    answer["Content-Type"] = "text/csv; charset=utf-8"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
