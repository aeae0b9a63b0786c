"""Accounts of any tenant, for operators: the same that the tenant gets."""

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api import papers
from billing.api.statement import SPAN, StatementOut, account_of, shown
from billing.services.papers import keeping
from tenants.api.operators import AllTenants
from tenants.models import Tenant
from tenants.services import walls


class OpsStatements(AllTenants):
    """A tenant's account with us, from the ledger."""

    serializer_class, rows, visit = StatementOut, Tenant, "statement"
    pagination_class = None
    parameters = frozenset({"from", "to"})

    @extend_schema(parameters=SPAN, responses=StatementOut, filters=False)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return what it owed, paid, was given back and drew in a stretch of time, first to last."""
        with walls.as_staff():
            tenant = get_object_or_404(Tenant, pk=pk)
        with walls.as_tenant(tenant.pk):
            return Response(shown(account_of(request, tenant, self.now), tenant))

    @extend_schema(parameters=SPAN, responses=papers.PDF, filters=False)
    def pdf(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the same as PDF."""
        with walls.as_staff():
            tenant = get_object_or_404(Tenant, pk=pk)
        with walls.as_tenant(tenant.pk):
            return papers.sent(request, keeping.account_paper(tenant, account_of(request, tenant, self.now)))
