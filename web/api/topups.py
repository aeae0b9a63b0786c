"""API of wallet top-ups, by hand and by an automatic rule."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import AutoTopUp, TopUp
from billing.services.payments.topups import automatic_topups, topup_creation
from web.api.amounts import MoneyOut, money_out
from web.api.base_views import RowViewSet, WholeTenantViewSet, needs, validated_body
from web.api.payments import STATUS_FILTER, GatewayTransactionOut
from web.api.serializer_fields import StrictSerializer
from web.http.idempotency import idempotent

MAX_AMOUNT_LENGTH = 20  # characters of an amount


class TopUpOut(GatewayTransactionOut):
    """Top-up of the wallet; once settled, succeeded or declined, it never changes."""

    automatic = serializers.BooleanField(help_text="Started automatically.")
    last_error = serializers.CharField(help_text="Why a pending top-up is not settled yet, for people.")

    class Meta:
        model = TopUp
        fields = ("id", "status", "amount", "gateway", "automatic", "reference", "code", "reason", "last_error",
                  "opened_at", "settled_at")  # fmt: skip


class TopUpCreate(StrictSerializer):
    amount = serializers.CharField(
        max_length=MAX_AMOUNT_LENGTH, help_text="An amount of your currency, such as 100.00."
    )


class TopUpRows(RowViewSet):
    """Top-ups, as tenants and operators list them."""

    rows = TopUp.objects.select_related("tenant")
    filters = STATUS_FILTER


class TopUpViewSet(TopUpRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Top-ups, one at a time."""

    serializer_class = TopUpOut
    actions_needed = needs("billing.read", "list", "retrieve") | needs("billing.write", "create")

    @extend_schema(request=TopUpCreate, responses={202: TopUpOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Collect money into the wallet.

        Repeating a stuck one's amount continues it, and nothing is collected twice.
        """
        tenant = self.request.tenant
        minor = topup_creation.parse_topup_amount(
            validated_body(TopUpCreate, request)["amount"], tenant.currency, "amount"
        )
        made = topup_creation.open_topup(tenant, minor=minor, **self.by)
        return Response(self.get_serializer(made).data, status=202, headers={"Location": f"/api/v1/topups/{made.pk}"})


@extend_schema_serializer(many=False)
class TopUpRuleOut(serializers.Serializer[Any]):
    """Amount and threshold of the automatic top-up; null while it is off."""

    threshold = MoneyOut(allow_null=True)
    amount = MoneyOut(allow_null=True)
    stopped_at = serializers.DateTimeField(allow_null=True, help_text="Save it again to resume.")
    stopped_reason = serializers.CharField(
        help_text="Why it was stopped: declined top-ups are not retried automatically."
    )


class TopUpRuleIn(StrictSerializer):
    threshold = serializers.CharField(max_length=MAX_AMOUNT_LENGTH)
    amount = serializers.CharField(max_length=MAX_AMOUNT_LENGTH)


class TopUpRuleViewSet(WholeTenantViewSet):
    """Rule of the automatic top-up."""

    serializer_class = TopUpRuleOut
    pagination_class = None
    rows = AutoTopUp.objects.all()
    actions_needed = needs("billing.read", "list") | needs("billing.write", "replace", "unset")

    @extend_schema(responses=TopUpRuleOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return the rule."""
        return self._rule_response()

    @extend_schema(request=TopUpRuleIn, responses=TopUpRuleOut)
    def replace(self, request: Request) -> Response:
        """Set the rule, or restart it after a decline."""
        wanted, tenant = validated_body(TopUpRuleIn, request), self.request.tenant
        automatic_topups.set_automatic_topup(
            tenant,
            threshold=topup_creation.parse_topup_amount(wanted["threshold"], tenant.currency, "threshold"),
            minor=topup_creation.parse_topup_amount(wanted["amount"], tenant.currency, "amount"),
            **self.by,
        )
        return self._rule_response()

    @extend_schema(responses={204: None})
    def unset(self, request: Request) -> Response:
        """Remove the rule: top up by hand only."""
        automatic_topups.remove_automatic_topup(self.request.tenant, **self.by)
        return Response(status=204)

    def _rule_response(self) -> Response:
        rule, currency = self.get_queryset().first(), self.request.tenant.currency
        return Response(
            {
                "threshold": money_out(rule.threshold_minor, currency) if rule else None,
                "amount": money_out(rule.minor, currency) if rule else None,
                "stopped_at": rule.stopped_at if rule else None,
                "stopped_reason": rule.why if rule else "",
            }
        )
