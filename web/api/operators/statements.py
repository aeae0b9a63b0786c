"""Operators' API of account statements of any tenant; the same as the tenant gets."""

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.services.documents import document_store
from tenants.models import Tenant
from tenants.services import rls
from web.api import documents
from web.api.operators.base_views import CrossTenantViewSet
from web.api.statements import PERIOD_PARAMETERS, StatementOut, read_statement, statement_body


class OperatorStatementViewSet(CrossTenantViewSet):
    """A tenant's account statement, from the ledger."""

    area = "billing"
    serializer_class, rows, audit_action = StatementOut, Tenant.objects.all(), "statement"
    pagination_class = None
    action_parameters = dict.fromkeys(("retrieve", "pdf"), frozenset({"from", "to"}))

    @extend_schema(parameters=PERIOD_PARAMETERS, responses=StatementOut, filters=False)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return invoices, payments, credits and draws of a period, in order."""
        with rls.staff_scope():
            tenant = get_object_or_404(Tenant, pk=pk)
        with rls.tenant_scope(tenant.pk):
            return Response(statement_body(read_statement(request, tenant, self.now), tenant))

    @extend_schema(parameters=PERIOD_PARAMETERS, responses=documents.PDF, filters=False)
    def pdf(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the same as PDF."""
        with rls.staff_scope():
            tenant = get_object_or_404(Tenant, pk=pk)
        with rls.tenant_scope(tenant.pk):
            return documents.document_response(
                request, document_store.account_statement_pdf(tenant, read_statement(request, tenant, self.now))
            )
