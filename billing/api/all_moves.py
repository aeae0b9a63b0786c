"""Top-ups of all tenants, and what operators decide about a payment or a top-up that waits for a person."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.all_money import PaymentSeenOut
from billing.api.topups import TopUpOut
from billing.models import Payment, PaymentStatus, TopUp
from billing.services.moves import by_hand
from billing.services.payments.collecting import PAYMENTS
from billing.services.topups.collecting import TOPUPS
from broker.api.all_leases import Named
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls

SAID = (
    "Say that its gateway took nothing. Where that gateway is set here it is asked first and sees that nothing is ever"
    " taken: the answer is pending until then, and succeeded where it was taken after all. 409 while it waits for no"
    " person, or may still get an answer."
)


class TopUpSeenOut(TopUpOut):
    """Money on its way into a wallet, and whose."""

    tenant = Named()

    class Meta(TopUpOut.Meta):
        fields = ("tenant", *TopUpOut.Meta.fields)  # type: ignore[assignment]


class OpsTopUps(AllTenants):
    """Top-ups of all tenants. Those that wait for a person are `status=stuck`."""

    serializer_class, rows, visit = TopUpSeenOut, TopUp, "topups"
    sorts = ("id", "-id")
    filters = {"tenant": Filter("tenant_id"), "status": Filter("status", choices=tuple(PaymentStatus.values))}

    def get_queryset(self) -> QuerySet[TopUp]:
        return TopUp.objects.select_related("tenant")


class Because(Strict):
    reason = serializers.CharField(max_length=500, help_text="Tenants and colleagues read it.")


class OpsUntakenPayments(AllTenants):
    """A payment that took nothing."""

    serializer_class, rows, visit = PaymentSeenOut, Payment, "payments"

    def get_queryset(self) -> QuerySet[Payment]:
        return Payment.objects.select_related("tenant", "invoice").prefetch_related("disputes", "refunds")

    @extend_schema(request=Because, responses={200: PaymentSeenOut}, description=SAID)
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Settle it by hand."""
        with walls.as_staff():
            row = self.get_object()
        why = shape(Because, request)["reason"]
        by_hand.nothing_was_taken(PAYMENTS, row, why=why, actor=self.actor, now=self.now)
        with walls.as_staff():
            return Response(PaymentSeenOut(self.get_object()).data)


class OpsUntakenTopUps(AllTenants):
    """A top-up that took nothing."""

    serializer_class, rows, visit = TopUpSeenOut, TopUp, "topups"

    def get_queryset(self) -> QuerySet[TopUp]:
        return TopUp.objects.select_related("tenant")

    @extend_schema(request=Because, responses={200: TopUpSeenOut}, description=SAID)
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Settle it by hand."""
        with walls.as_staff():
            row = self.get_object()
        why = shape(Because, request)["reason"]
        by_hand.nothing_was_taken(TOPUPS, row, why=why, actor=self.actor, now=self.now)
        with walls.as_staff():
            return Response(TopUpSeenOut(self.get_object()).data)
