"""Operators' API of tenants with payment terms of their own."""

from rest_framework import serializers

from billing.models import AccountStatus, AccountTerms, PaymentTerms
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, NamedOut
from web.http.filters import QueryFilter


class OperatorPaymentTermsOut(serializers.ModelSerializer[AccountTerms]):
    """A tenant's payment terms and account status.

    A tenant that is not in the list pays by invoice, and its account status is good.
    """

    tenant = NamedOut()
    payment_terms = serializers.ChoiceField(PaymentTerms.choices, source="payment")
    reason = serializers.CharField(source="why")

    class Meta:
        model = AccountTerms
        fields = ("tenant", "payment_terms", "account_status", "reason", "since")


class OperatorPaymentTermsViewSet(CrossTenantViewSet):
    """Tenants whose payment terms or account status differ or have differed from the default."""

    area = "tenants"
    serializer_class, audit_action = OperatorPaymentTermsOut, "payment_terms"
    rows = AccountTerms.objects.select_related("tenant")
    sorts = OLDEST_FIRST
    filters = TENANT_FILTER | {
        "payment_terms": QueryFilter("payment", choices=tuple(PaymentTerms.values)),
        "account_status": QueryFilter("account_status", choices=tuple(AccountStatus.values)),
    }
