"""Disputes of all tenants, for operators, who answer them."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.disputes import LONGEST_AMOUNT, ChargeDisputeOut, with_steps
from billing.models import Dispute, DisputeStatus
from billing.models.disputes import LONGEST_REASON
from billing.services.disputes import answering, asking, ran
from broker.api.all_leases import Named
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls

MOST_LEASES = 200


class ChargeDisputeSeenOut(ChargeDisputeOut):
    """A dispute, and whose."""

    tenant = Named()

    class Meta(ChargeDisputeOut.Meta):
        fields = ("tenant", *ChargeDisputeOut.Meta.fields)  # type: ignore[assignment]


class RanOut(serializers.Serializer[ran.Ran]):
    """A lease on the line, from when to when it was charged there, and for how many seconds, each slice for itself."""

    lease = serializers.CharField()
    name = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    unit_seconds = serializers.IntegerField(source="seconds")


class ChargeDisputeWholeOut(ChargeDisputeSeenOut):
    """A dispute, whose, and what ran on its line."""

    leases = serializers.SerializerMethodField(help_text=f"Most seconds first, {MOST_LEASES} at most.")

    class Meta(ChargeDisputeSeenOut.Meta):
        fields = (*ChargeDisputeSeenOut.Meta.fields, "leases")  # type: ignore[assignment]

    @extend_schema(responses=RanOut(many=True))
    def get_leases(self, dispute: Dispute) -> Any:
        found: Any = ran.on(dispute.line, most=MOST_LEASES)
        return RanOut(found, many=True).data


class DisputeAnswer(Strict):
    status = serializers.ChoiceField(choices=[DisputeStatus.ACCEPTED.value, DisputeStatus.DECLINED.value])
    amount = serializers.CharField(
        max_length=LONGEST_AMOUNT,
        required=False,
        help_text="What is given back, before tax, where it is accepted. Else all that is in question.",
    )
    answer = serializers.CharField(
        max_length=LONGEST_REASON,
        required=False,
        default="",
        allow_blank=True,
        help_text="What the tenant reads; needed to decline.",
    )


class OpsDisputes(AllTenants):
    """What tenants say they should not have been charged."""

    serializer_class, rows, visit = ChargeDisputeSeenOut, Dispute, "disputes"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {
        "tenant": Filter("tenant_id"),
        "invoice": Filter("invoice_id"),
        "status": Filter("status", choices=tuple(DisputeStatus.values)),
    }

    def get_queryset(self) -> QuerySet[Dispute]:
        return with_steps(Dispute.objects.select_related("tenant", "line__invoice"))

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return ChargeDisputeSeenOut if self.action == "list" else ChargeDisputeWholeOut

    @extend_schema(request=DisputeAnswer, responses=ChargeDisputeWholeOut, filters=False)
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer it: give back all or a part of it by a credit note, or decline with a reason. Once, for good."""
        with walls.as_staff():
            found: Dispute = self.get_object()
        asked = shape(DisputeAnswer, request)
        who: dict[str, Any] = {"actor": self.actor, "now": self.now}
        if asked["status"] == DisputeStatus.ACCEPTED:
            minor = asking.amount_of(asked.get("amount"), found.currency)
            answering.accept(found, minor=minor, answer=asked["answer"], **who)
        else:
            answering.decline(found, answer=asked["answer"], **who)
        with walls.as_staff():
            return Response(self.get_serializer(self.get_object()).data)
