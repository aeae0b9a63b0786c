"""API of what a tenant owes, and of its balance, from the ledger."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Invoice
from billing.services.ledger import ledger_balances
from web.api.amounts import MoneyOut, money_out
from web.api.base_views import WholeTenantViewSet, needs


@extend_schema_serializer(many=False)
class TenantBalanceOut(serializers.Serializer[Any]):
    """Amount owed, and credit on the balance that was not drawn yet."""

    owed = MoneyOut(many=True, help_text="Amount due for final invoices, per currency.")
    balance = MoneyOut(help_text="Pays the next final invoice first.")


class BalanceViewSet(WholeTenantViewSet):
    """Balance of the whole tenant."""

    serializer_class = TenantBalanceOut
    pagination_class = None
    rows = Invoice.objects.all()
    actions_needed = needs("billing.read", "list")

    @extend_schema(responses=TenantBalanceOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return what the tenant owes, and what is on its balance."""
        tenant = self.request.tenant
        return Response(
            {
                "owed": [money_out(each.minor, each.currency) for each in ledger_balances.amounts_owed(tenant.pk)],
                "balance": money_out(ledger_balances.available_balance(tenant.pk, tenant.currency), tenant.currency),
            }
        )
