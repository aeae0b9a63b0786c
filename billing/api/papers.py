"""Papers and tables on the wire: a PDF as a file, with the SHA-256 of its bytes as its ETag, and CSV."""

from collections.abc import Iterator
from itertools import chain

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from billing.services.papers.keeping import Handed

AT_ONCE = 1_000_000  # bytes
CSV = {(200, "text/csv"): OpenApiTypes.STR}
PDF = {(200, "application/pdf"): OpenApiTypes.BINARY}


class Pdf(JSONRenderer):
    """Lets whoever accepts nothing but PDF through; what is refused is said in JSON all the same."""

    media_type, format = "application/pdf", "pdf"


class Csv(JSONRenderer):
    """The same for who accepts nothing but CSV."""

    media_type, format = "text/csv", "csv"


RENDERERS = [JSONRenderer, Pdf, Csv]


def sent(request: Request, handed: Handed) -> HttpResponseBase:
    """Answer with a paper; whoever has it already is told so."""
    answer = HttpResponse(handed.pdf, content_type="application/pdf")
    answer["Content-Disposition"] = f'attachment; filename="{handed.name}"'
    answer["ETag"] = f'"{handed.sha256}"'
    return get_conditional_response(request._request, etag=answer["ETag"], response=answer) or answer


def sheet(name: str, pieces: Iterator[str]) -> HttpResponseBase:
    """Answer with a table as a file: whole if it is short, else piece by piece."""
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
