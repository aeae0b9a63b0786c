"""Refunds to cards, which operators ask for."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.all_moves import Because
from billing.api.amounts import MoneyOut, money
from billing.domain.money import NotAnAmount, minor_of
from billing.models import Payment, PaymentStatus, Refund
from billing.services.refunds import opening
from broker.api.all_leases import Named
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls
from tenants.services.refusals import Invalid


class RefundSeenOut(serializers.ModelSerializer[Refund]):
    """Money on its way back to the card that it came from. One that came back is on the tenant's balance again."""

    tenant = Named()
    payment = serializers.CharField(source="payment_id")
    amount = serializers.SerializerMethodField()
    why = serializers.CharField(help_text="Why it was asked for.")
    code = serializers.CharField(help_text="Why it was declined or is stuck, for programs.")
    reason = serializers.CharField(help_text="Why it was declined or is stuck, for people.")
    trouble = serializers.CharField(help_text="Why a pending one has no answer yet, for people.")

    class Meta:
        model = Refund
        fields = (
            *("tenant", "id", "payment", "status", "amount", "gateway", "why", "reference", "code", "reason"),
            *("trouble", "opened_at", "settled_at", "returned_at"),
        )

    @extend_schema(responses=MoneyOut)
    def get_amount(self, refund: Refund) -> dict[str, str]:
        return money(refund.minor, refund.currency)


class RefundWanted(Because):
    amount = serializers.CharField(
        max_length=20, help_text="An amount of the payment's currency, such as 12.50."
    )
    seen = serializers.CharField(
        max_length=20,
        help_text="How much had gone back when you looked, so that asked twice it goes back once.",
    )


class OpsRefunds(AllTenants):
    """Refunds of all tenants. Those that wait for a person are `status=stuck`."""

    serializer_class, rows, visit = RefundSeenOut, Refund, "payments"
    sorts = ("id", "-id")
    filters = {
        "tenant": Filter("tenant_id"),
        "payment": Filter("payment_id"),
        "status": Filter("status", choices=tuple(PaymentStatus.values)),
    }

    def get_queryset(self) -> QuerySet[Refund]:
        return Refund.objects.select_related("tenant", "payment__invoice")


class OpsRefundsOfPayments(AllTenants):
    """A refund of a payment."""

    serializer_class, rows, visit = RefundSeenOut, Payment, "payments"

    def get_queryset(self) -> QuerySet[Payment]:
        return Payment.objects.select_related("tenant", "invoice")

    @extend_schema(
        request=RefundWanted,
        responses={200: RefundSeenOut},
        description=(
            "Send so much of a payment back to its card, out of its tenant's balance: never more than it took less what"
            " went back, nor than was given back of its invoice. 409 while another is under way, or where more went"
            " back than was seen."
        ),
    )
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Send it back."""
        with walls.as_staff():
            payment = self.get_object()
        told = shape(RefundWanted, request)
        made = opening.refund(
            payment,
            minor=_minor(told["amount"], payment.currency, "amount"),
            seen=_minor(told["seen"], payment.currency, "seen"),
            why=told["reason"],
            actor=self.actor,
            now=self.now,
        )
        with walls.as_staff():
            return Response(RefundSeenOut(Refund.objects.select_related("tenant").get(pk=made.pk)).data)


def _minor(text: str, currency: str, field: str) -> int:
    try:
        return minor_of(text, currency)
    except NotAnAmount as odd:
        raise Invalid(field, str(odd), fix="Send an amount such as 12.50.") from odd


class Again(Strict):
    status = serializers.ChoiceField(choices=[PaymentStatus.PENDING.value], help_text="What it is to be.")


class OpsRefundsAgain(AllTenants):
    """A refund that is stuck."""

    serializer_class, rows, visit = RefundSeenOut, Refund, "payments"

    def get_queryset(self) -> QuerySet[Refund]:
        return Refund.objects.select_related("tenant", "payment__invoice")

    @extend_schema(
        request=Again,
        responses={200: RefundSeenOut},
        description="Have a refund that is stuck asked for again.",
    )
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Ask for it again."""
        with walls.as_staff():
            row = self.get_object()
        shape(Again, request)
        opening.ask_again(row, actor=self.actor, now=self.now)
        with walls.as_staff():
            return Response(RefundSeenOut(self.get_object()).data)
