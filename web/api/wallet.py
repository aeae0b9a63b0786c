"""API of a tenant's balance, payment terms, account status and available funds."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import AccountStatus, AccountTerms, Invoice, PaymentTerms
from billing.services.funds.accounts import account_terms
from billing.services.funds.wallets import wallet_balances as wallets
from billing.services.ledger import ledger_balances
from web.api.amounts import MoneyOut, money_out
from web.api.base_views import WholeTenantViewSet, needs


@extend_schema_serializer(many=False)
class WalletOut(serializers.Serializer[Any]):
    """Payment terms and funds of a tenant.

    A lease of a prepaid tenant may begin on what is available: paid money and credit, less what is taken.
    """

    payment_terms = serializers.ChoiceField(
        PaymentTerms.choices, help_text="prepaid: leases need money or credit in the wallet."
    )
    account_status = serializers.ChoiceField(
        AccountStatus.choices, help_text="suspended: running leases continue, new leases are refused."
    )
    reason = serializers.CharField()
    paid = MoneyOut(help_text="Balance according to the ledger.")
    credit = MoneyOut(help_text="Unrestricted credits that do not expire before the invoice.")
    taken = MoneyOut(
        help_text="Used but not invoiced. Of a prepaid tenant including tax, plus reservations for running and queued"
        " leases; of others before tax."
    )
    available = MoneyOut()


class WalletViewSet(WholeTenantViewSet):
    """Wallet of the whole tenant."""

    serializer_class = WalletOut
    pagination_class = None
    rows = AccountTerms.objects.all()
    actions_needed = needs("billing.read", "list")

    @extend_schema(responses=WalletOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return the payment terms and the wallet's current figures."""
        tenant = self.request.tenant
        found, funds = account_terms.terms_of(tenant), wallets.wallet_funds(tenant, now=self.now)
        amounts = {
            name: money_out(getattr(funds, name), funds.currency) for name in ("paid", "credit", "taken", "available")
        }
        return Response(
            {"payment_terms": found.payment, "account_status": found.account_status, "reason": found.why, **amounts}
        )


@extend_schema_serializer(many=False)
class TenantBalanceOut(serializers.Serializer[Any]):
    """Amount owed, and credit on the balance that was not drawn yet."""

    owed_by_currency = MoneyOut(many=True, help_text="Amount due for final invoices, per currency.")
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
                "owed_by_currency": [
                    money_out(each.minor, each.currency) for each in ledger_balances.amounts_owed(tenant.pk)
                ],
                "balance": money_out(ledger_balances.available_balance(tenant.pk, tenant.currency), tenant.currency),
            }
        )
