"""How a tenant pays and stands, and what of its money and credit is free."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, money
from billing.models import PaymentTerms, TenantStanding, TenantTerms
from billing.services.wallets import money as wallets
from billing.services.wallets import terms
from tenants.api.views import TenantViewSet


@extend_schema_serializer(many=False)
class WalletOut(serializers.Serializer[Any]):
    """What a lease of a prepaid tenant may begin on is what is available: paid and credit, less what is taken."""

    payment = serializers.ChoiceField(
        PaymentTerms.choices, help_text="prepaid: a lease runs on money and credit that is there."
    )
    standing = serializers.ChoiceField(
        TenantStanding.choices, help_text="suspended: what runs goes on, nothing new begins."
    )
    why = serializers.CharField()
    paid = MoneyOut(help_text="On the balance, by the ledger.")
    credit = MoneyOut(help_text="Grants that pay for everything and do not end before it is invoiced.")
    taken = MoneyOut(help_text="Used and not invoiced yet, and set aside for what runs and waits; with tax.")
    available = MoneyOut()


class WalletView(TenantViewSet):
    """The whole tenant's, as its invoices are."""

    serializer_class = WalletOut
    pagination_class = None
    actions_needed = {"list": "billing.read"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[TenantTerms]:
        return self.visible(TenantTerms.objects.all())

    @extend_schema(responses=WalletOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return the terms, and how the wallet stands now."""
        tenant = self.request.tenant
        found, funds = terms.of(tenant), wallets.funds(tenant, now=self.now)
        amounts = {
            name: money(getattr(funds, name), funds.currency)
            for name in ("paid", "credit", "taken", "available")
        }
        return Response({"payment": found.payment, "standing": found.standing, "why": found.why, **amounts})
