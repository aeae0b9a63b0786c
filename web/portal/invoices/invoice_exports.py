"""Download views of the CSV exports of an invoice."""

from typing import Any

from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from billing.services.documents import csv_exports
from tenants.services.errors import ObjectNotFound
from web.http import downloads
from web.portal.invoices.invoice_pages import find_invoice
from web.portal.page_context import PageRequest, tenant_page


@require_GET
@tenant_page("billing.read")
def download_export(request: PageRequest, pk: str, kind: str) -> Any:
    """Download an export, streamed if it is large."""
    found = find_invoice(request, pk)
    if kind not in csv_exports.EXPORT_KINDS:
        raise ObjectNotFound(
            _("Unknown export {kind!r}.").format(kind=kind),
            fix=_("Use one of {export_kinds}.").format(export_kinds=", ".join(csv_exports.EXPORT_KINDS)),
        )
    return downloads.streamed_csv_response(csv_exports.csv_file_name(found, kind), csv_exports.csv_text(found, kind))
