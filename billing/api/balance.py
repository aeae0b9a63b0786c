"""What a tenant owes and what is on its balance, by the ledger."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, money
from billing.models import Invoice
from billing.services.ledger import books
from tenants.api.views import TenantViewSet


@extend_schema_serializer(many=False)
class StandingOut(serializers.Serializer[Any]):
    """Two sides of the same books: what is still to be paid, and what was given back and not drawn since."""

    owed = MoneyOut(many=True, help_text="For final invoices, in each currency in which anything is owed.")
    balance = MoneyOut(help_text="The next invoice that becomes final is settled from it first.")


class Balances(TenantViewSet):
    """The whole tenant's, as its invoices are."""

    serializer_class = StandingOut
    pagination_class = None
    actions_needed = {"list": "billing.read"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[Invoice]:
        return self.visible(Invoice.objects.all())

    @extend_schema(responses=StandingOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return what the tenant owes, and what is on its balance."""
        tenant = self.request.tenant
        return Response(
            {
                "owed": [money(each.minor, each.currency) for each in books.owed(tenant.pk)],
                "balance": money(books.balance(tenant.pk, tenant.currency), tenant.currency),
            }
        )
