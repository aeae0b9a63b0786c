"""Papers on the wire: a PDF as a file, with the SHA-256 of its bytes as its ETag."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from billing.services.papers.keeping import Handed

PDF = {(200, "application/pdf"): OpenApiTypes.BINARY}


class Pdf(JSONRenderer):
    """Lets whoever accepts nothing but PDF through; what is refused is said in JSON all the same."""

    media_type, format = "application/pdf", "pdf"


RENDERERS = [JSONRenderer, Pdf]


def sent(request: Request, handed: Handed) -> HttpResponseBase:
    """Answer with a paper; whoever has it already is told so."""
    answer = HttpResponse(handed.pdf, content_type="application/pdf")
    answer["Content-Disposition"] = f'attachment; filename="{handed.name}"'
    answer["ETag"] = f'"{handed.sha256}"'
    return get_conditional_response(request._request, etag=answer["ETag"], response=answer) or answer
