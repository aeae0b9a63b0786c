"""Disputes: lines of final invoices that their tenant says should not have been charged, and what was answered."""

from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, money
from billing.api.topups import OfTheTenant
from billing.models import Dispute, DisputeStatus, DisputeStep, Invoice
from billing.models.disputes import LONGEST_REASON
from billing.services.disputes import asking
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.operators import whole
from tenants.api.views import shape
from tenants.services.refusals import Invalid

LONGEST_AMOUNT = 20
BIGGEST = 10**9


class DisputeStepOut(serializers.ModelSerializer[DisputeStep]):
    """What happened to it; `amount` is what was in question then, or what was given back."""

    amount = serializers.SerializerMethodField()

    class Meta:
        model = DisputeStep
        fields = ("status", "amount", "words", "by", "at")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, step: DisputeStep) -> dict[str, str]:
        return money(step.minor, step.dispute.currency)


class ChargeDisputeOut(serializers.ModelSerializer[Dispute]):
    """So much of one line is in question. While it is open nobody goes after it; it ends once."""

    invoice = serializers.CharField(source="invoice_id")
    line = serializers.IntegerField(source="line.n", help_text="The line's number on its invoice.")
    amount = serializers.SerializerMethodField(help_text="Of the line, before tax.")
    tax = serializers.SerializerMethodField(help_text="That would go back with it, beside the amount.")
    answer = serializers.CharField(help_text="What the operator said to it.")
    credit_note = serializers.CharField(source="credit_note_id", allow_null=True)
    steps = DisputeStepOut(many=True)

    class Meta:
        model = Dispute
        fields = (
            "id",
            "invoice",
            "line",
            "amount",
            "tax",
            "status",
            "reason",
            "answer",
            "credit_note",
            "opened_at",
            "opened_by",
            "closed_at",
            "steps",
        )

    @extend_schema(responses=MoneyOut)
    def get_amount(self, dispute: Dispute) -> dict[str, str]:
        return money(dispute.minor, dispute.currency)

    @extend_schema(responses=MoneyOut)
    def get_tax(self, dispute: Dispute) -> dict[str, str]:
        return money(dispute.tax_minor, dispute.currency)


@extend_schema_serializer(many=False)
class ChargeDisputesOut(serializers.Serializer[Any]):
    items = ChargeDisputeOut(many=True)
    next_cursor = serializers.CharField(allow_null=True)
    total_estimate = serializers.IntegerField()


class DisputedLine(Strict):
    n = serializers.IntegerField(min_value=1, max_value=BIGGEST)
    amount = serializers.CharField(
        max_length=LONGEST_AMOUNT,
        required=False,
        help_text="Of it, before tax, such as 12.50. Else all that is left of the line.",
    )


class DisputeWanted(Strict):
    invoice = serializers.CharField(max_length=40)
    lines = serializers.ListField(child=DisputedLine(), max_length=asking.MOST_LINES)
    reason = serializers.CharField(max_length=LONGEST_REASON)


def with_steps(disputes: QuerySet[Dispute]) -> QuerySet[Dispute]:
    """Have each dispute's line and steps at hand; one query more."""
    steps = DisputeStep.objects.select_related("dispute").order_by("n")
    return disputes.select_related("line").prefetch_related(Prefetch("steps", steps))


class Disputes(ListModelMixin, RetrieveModelMixin, OfTheTenant):
    """Disputes are the whole tenant's, as invoices are."""

    serializer_class = ChargeDisputeOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {
        "invoice": Filter("invoice_id"),
        "status": Filter("status", choices=tuple(DisputeStatus.values)),
    }
    actions_needed = {
        "list": "billing.read",
        "retrieve": "billing.read",
        "create": "billing.write",
        "withdraw": "billing.write",
    }

    def get_queryset(self) -> QuerySet[Dispute]:
        return self.visible(with_steps(Dispute.objects.all()))

    @extend_schema(request=DisputeWanted, responses={201: ChargeDisputesOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Dispute lines of a final invoice, within its window; each line is answered apart.

        Nothing is booked by it. Until it is answered nobody goes after the amount, and no payment begins by itself.
        """
        asked = shape(DisputeWanted, request)
        found = Invoice.objects.filter(tenant=self.request.tenant, pk=asked["invoice"]).first()
        if found is None:
            raise Invalid(
                "invoice", "There is no such invoice here.", fix="Look it up in the list of invoices."
            )
        named = [each["n"] for each in asked["lines"]]
        if twice := next((n for n in named if named.count(n) > 1), None):
            raise Invalid("lines", f"Line {twice} is named twice.", fix="Name each line once.")
        made = asking.dispute(
            found,
            lines={
                each["n"]: asking.amount_of(each.get("amount"), found.currency) for each in asked["lines"]
            },
            reason=asked["reason"],
            actor=self.request.actor,
            now=self.now,
        )
        shown = with_steps(Dispute.objects.filter(pk__in=[each.pk for each in made])).order_by("line__n")
        return Response(whole(ChargeDisputeOut(shown, many=True).data).data, status=201)

    @extend_schema(request=None, responses=ChargeDisputeOut)
    @action(detail=True, methods=["post"])
    @idempotent()
    def withdraw(self, request: Request, pk: str) -> Response:
        """Take an open dispute back; the line can be disputed anew while the window is open."""
        done = asking.withdraw(self.get_object(), actor=self.request.actor, now=self.now)
        return Response(ChargeDisputeOut(with_steps(Dispute.objects.filter(pk=done.pk)).get()).data)
