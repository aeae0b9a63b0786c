"""Exports of any tenant's invoices and statements, as the tenant itself downloads them."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from billing.domain.periods import midnight
from billing.models import Invoice
from billing.services.documents import csv_exports, document_store
from billing.services.ledger import account_entries
from tenants.models import Tenant
from tenants.services.errors import ObjectNotFound
from tenants.services.rls import login_role_scope, tenant_scope
from web.http import downloads
from web.portal.operators.page_context import OperatorRequest, operator_page
from web.portal.statements.statement_pages import CSV_HEADERS, statement_rows


@require_safe
@operator_page("invoice.export")
def download_invoice_export(request: OperatorRequest, pk: str, kind: str) -> Any:
    """Download an invoice's lines, its charges, or its charges as FOCUS."""
    found = Invoice.objects.select_related("period", "tenant").filter(pk=pk).first()
    if found is None or kind not in csv_exports.EXPORT_KINDS:
        raise ObjectNotFound(
            _("{pk!r} has no export {kind!r}.").format(pk=pk, kind=kind),
            fix=_("Available exports: {export_kinds}.").format(export_kinds=", ".join(csv_exports.EXPORT_KINDS)),
        )
    with login_role_scope(), tenant_scope(found.tenant_id):
        return downloads.streamed_csv_response(
            csv_exports.csv_file_name(found, kind), csv_exports.csv_text(found, kind)
        )


@require_safe
@operator_page("statement")
def download_statement(request: OperatorRequest, pk: str, kind: str) -> Any:
    """Download a tenant's statement of this year, as CSV or PDF."""
    tenant = Tenant.objects.filter(pk=pk).first()
    if tenant is None or kind not in ("csv", "pdf"):
        raise ObjectNotFound(
            _("{pk!r} has no export {kind!r}.").format(pk=pk, kind=kind),
            fix=_("Statements are available as csv and pdf."),
        )
    zone = ZoneInfo(tenant.time_zone)
    today = request.now.astimezone(zone).date()
    first, until = today.replace(month=1, day=1), request.now.replace(microsecond=0) + timedelta(seconds=1)
    with login_role_scope(), tenant_scope(tenant.pk):
        account = account_entries.read_account(tenant.pk, tenant.currency, since=midnight(first, zone), until=until)
        if kind == "pdf":
            return downloads.pdf_response(request, document_store.account_statement_pdf(tenant, account))
        return downloads.csv_response(
            f"statement-{tenant.name}-{first}-{today}".replace(" ", "-"), CSV_HEADERS, statement_rows(account)
        )
