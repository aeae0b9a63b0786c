"""Putting money into the wallet: by hand, and by a rule."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, money
from billing.models import AutoTopUp, PaymentStatus, TopUp
from billing.services.topups import by_itself, opening
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.views import TenantViewSet, shape

LONGEST = 20  # letters of an amount


class TopUpOut(serializers.ModelSerializer[TopUp]):
    """Money on its way into the wallet. A settled one, succeeded or declined, never changes."""

    amount = serializers.SerializerMethodField()
    automatic = serializers.BooleanField(help_text="Nobody asked for it.")
    code = serializers.CharField(help_text="Why it was declined or is stuck, for programs.")
    reason = serializers.CharField(help_text="Why it was declined or is stuck, for people.")
    trouble = serializers.CharField(help_text="Why a pending one has no answer yet, for people.")

    class Meta:
        model = TopUp
        fields = (
            "id",
            "status",
            "amount",
            "gateway",
            "automatic",
            "reference",
            "code",
            "reason",
            "trouble",
            "opened_at",
            "settled_at",
        )

    @extend_schema(responses=MoneyOut)
    def get_amount(self, topup: TopUp) -> dict[str, str]:
        return money(topup.minor, topup.currency)


class TopUpWanted(Strict):
    amount = serializers.CharField(
        max_length=LONGEST, help_text="An amount of your currency, such as 100.00."
    )


class OfTheTenant(TenantViewSet):
    """Money is the whole tenant's."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()


class TopUps(ListModelMixin, RetrieveModelMixin, OfTheTenant):
    """Top-ups, one under way at a time."""

    serializer_class = TopUpOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"status": Filter("status", choices=tuple(PaymentStatus.values))}
    actions_needed = {"list": "billing.read", "retrieve": "billing.read", "create": "billing.write"}

    def get_queryset(self) -> QuerySet[TopUp]:
        return self.visible(TopUp.objects.all())

    @extend_schema(request=TopUpWanted, responses={202: TopUpOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Have the money collected; the same amount again lets one that is stuck go on, and nothing is taken twice."""
        tenant = self.request.tenant
        minor = opening.amount(shape(TopUpWanted, request)["amount"], tenant.currency, "amount")
        made = opening.top_up(tenant, minor=minor, actor=self.request.actor, now=self.now)
        return Response(
            self.get_serializer(made).data, status=202, headers={"Location": f"/api/v1/topups/{made.pk}"}
        )


@extend_schema_serializer(many=False)
class RuleOut(serializers.Serializer[Any]):
    """By how much the wallet is topped up, and below how much; null while it is not."""

    threshold = MoneyOut(allow_null=True)
    amount = MoneyOut(allow_null=True)
    stopped_at = serializers.DateTimeField(allow_null=True, help_text="Set it again to begin anew.")
    why = serializers.CharField(
        help_text="Why it was stopped: what was declined is not asked for unasked again."
    )


class RuleWanted(Strict):
    threshold = serializers.CharField(max_length=LONGEST)
    amount = serializers.CharField(max_length=LONGEST)


class TopUpRule(OfTheTenant):
    """What is topped up by itself."""

    serializer_class = RuleOut
    pagination_class = None
    actions_needed = {"list": "billing.read", "replace": "billing.write", "unset": "billing.write"}

    def get_queryset(self) -> QuerySet[AutoTopUp]:
        return self.visible(AutoTopUp.objects.all())

    @extend_schema(responses=RuleOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return the rule."""
        return self._told()

    @extend_schema(request=RuleWanted, responses=RuleOut)
    def replace(self, request: Request) -> Response:
        """Set the rule, or begin anew after a decline."""
        wanted, tenant = shape(RuleWanted, request), self.request.tenant
        by_itself.set_rule(
            tenant,
            threshold=opening.amount(wanted["threshold"], tenant.currency, "threshold"),
            minor=opening.amount(wanted["amount"], tenant.currency, "amount"),
            actor=self.request.actor,
            now=self.now,
        )
        return self._told()

    @extend_schema(responses={204: None})
    def unset(self, request: Request) -> Response:
        """Top up by hand only."""
        by_itself.unset_rule(self.request.tenant, actor=self.request.actor, now=self.now)
        return Response(status=204)

    def _told(self) -> Response:
        rule, currency = self.get_queryset().first(), self.request.tenant.currency
        return Response(
            {
                "threshold": money(rule.threshold_minor, currency) if rule else None,
                "amount": money(rule.minor, currency) if rule else None,
                "stopped_at": rule.stopped_at if rule else None,
                "why": rule.why if rule else "",
            }
        )
