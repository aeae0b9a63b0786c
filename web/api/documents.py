"""Media types of PDF and CSV files, and the response of a PDF."""

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from billing.services.documents.document_store import PdfFile
from web.http import downloads

CSV = {(200, "text/csv"): OpenApiTypes.STR}
XML = {(200, "application/xml"): OpenApiTypes.STR}
PDF = {(200, "application/pdf"): OpenApiTypes.BINARY}


class PdfRenderer(JSONRenderer):
    """Renderer for clients that accept only PDF; errors are still JSON."""

    media_type, format = "application/pdf", "pdf"


class CsvRenderer(JSONRenderer):
    """Renderer for clients that accept only CSV; errors are still JSON."""

    media_type, format = "text/csv", "csv"


class XmlRenderer(JSONRenderer):
    """Renderer for clients that accept only XML; errors are still JSON."""

    media_type, format = "application/xml", "xml"


RENDERERS = [JSONRenderer, PdfRenderer, CsvRenderer, XmlRenderer]


def document_response(request: Request, handed: PdfFile) -> HttpResponseBase:
    """Return the response of a document; 304 for a client that already has it."""
    return downloads.pdf_response(request._request, handed)
