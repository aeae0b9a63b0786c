"""Media types of PDF, XML and CSV files, and the responses of PDF and XML."""

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from billing.models import CreditNote, Invoice
from billing.services.documents import document_store
from billing.services.documents.document_store import PdfFile
from billing.services.documents.e_invoices.e_invoice_files import PROFILES
from billing.services.documents.e_invoices.invoice_parties import XRECHNUNG
from web.http import downloads

CSV = {(200, "text/csv"): OpenApiTypes.STR}
XML = {(200, "application/xml"): OpenApiTypes.STR}
PROFILE = OpenApiParameter(
    "profile", enum=PROFILES, description="`xrechnung` unless given; `factur-x` is the XML that PDFs contain."
)
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


def e_invoice_response(request: Request, of: Invoice | CreditNote) -> HttpResponseBase:
    """Return the electronic invoice of an invoice or credit note as XML."""
    profile = request.query_params.get("profile") or XRECHNUNG
    return downloads.xml_response(document_store.e_invoice_file(of, profile))
