"""Invoices and accounts of any tenant taken away by operators: the same files that their tenant gets."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.views.decorators.http import require_safe

from billing.domain.periods import midnight
from billing.models import Invoice
from billing.portal import downloads
from billing.portal.statement import HEADS, cells
from billing.services.exports import sheets
from billing.services.ledger import accounts
from billing.services.papers import keeping
from broker.portal.operations import OpsRequest, page
from tenants.models import Tenant
from tenants.services.refusals import Missing
from tenants.services.walls import as_itself, as_tenant


@require_safe
@page("invoice.export")
def invoice(request: OpsRequest, pk: str, kind: str) -> Any:
    """Send the lines of an invoice, its charges, or its charges in the shape of FOCUS."""
    found = Invoice.objects.select_related("period", "tenant").filter(pk=pk).first()
    if found is None or kind not in sheets.KINDS:
        raise Missing(
            f"There is no {kind!r} of {pk!r}.", fix=f"There are {', '.join(sheets.KINDS)} of an invoice."
        )
    with as_itself(), as_tenant(found.tenant_id):
        return downloads.sheet(sheets.file_name(found, kind), sheets.text(found, kind))


@require_safe
@page("statement")
def statement(request: OpsRequest, pk: str, kind: str) -> Any:
    """Send a tenant's account of this year, as CSV or PDF."""
    tenant = Tenant.objects.filter(pk=pk).first()
    if tenant is None or kind not in ("csv", "pdf"):
        raise Missing(
            f"There is no {kind!r} of {pk!r}.", fix="A statement of a tenant is there as csv and pdf."
        )
    zone = ZoneInfo(tenant.time_zone)
    today = request.now.astimezone(zone).date()
    first, until = today.replace(month=1, day=1), request.now.replace(microsecond=0) + timedelta(seconds=1)
    with as_itself(), as_tenant(tenant.pk):
        told = accounts.account(tenant.pk, tenant.currency, since=midnight(first, zone), until=until)
        if kind == "pdf":
            return downloads.paper(request, keeping.account_paper(tenant, told))
        return downloads.table(
            f"statement-{tenant.name}-{first}-{today}".replace(" ", "-"), HEADS, cells(told)
        )
