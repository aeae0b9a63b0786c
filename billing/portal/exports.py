"""An invoice taken away as CSV: its lines, its charges, and its charges in the shape of FOCUS."""

from typing import Any

from django.views.decorators.http import require_GET

from billing.portal import downloads
from billing.portal.invoices import invoice_of
from billing.portal.pages import PageRequest, page
from billing.services.exports import sheets
from tenants.services.refusals import Missing


@require_GET
@page("billing.read")
def export(request: PageRequest, pk: str, kind: str) -> Any:
    """Send it whole, or as a stream."""
    found = invoice_of(request, pk)
    if kind not in sheets.KINDS:
        raise Missing(f"There is no table {kind!r}.", fix=f"There are {', '.join(sheets.KINDS)}.")
    return downloads.sheet(sheets.file_name(found, kind), sheets.text(found, kind))
