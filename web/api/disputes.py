"""API of disputes about lines of final invoices, and of their answers."""

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Dispute, DisputeStatus, DisputeStep, Invoice
from billing.models.disputes import MAX_REASON_LENGTH
from billing.services.invoicing.disputes import dispute_requests
from tenants.services.errors import InvalidValue
from web.api.amounts import AmountField
from web.api.base_views import RowViewSet, WholeTenantViewSet, complete_page, needs, validated_body
from web.api.lease_serializers import page_of
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

MAX_AMOUNT_LENGTH = 20
MAX_LINE_NUMBER = 10**9


class DisputeStepOut(serializers.ModelSerializer[DisputeStep]):
    """A step of a dispute; `amount` is the disputed or credited amount."""

    amount = AmountField(of="dispute")
    text = serializers.CharField(source="words")
    actor_label = serializers.CharField(source="by")

    class Meta:
        model = DisputeStep
        fields = ("status", "amount", "text", "actor_label", "at")


class ChargeDisputeOut(serializers.ModelSerializer[Dispute]):
    """A disputed amount of one line.

    It is not collected while the dispute is open; a dispute ends once.
    """

    invoice = serializers.CharField(source="invoice_id")
    line = serializers.IntegerField(source="line.n", help_text="Line number on the invoice.")
    amount = AmountField(help_text="Disputed amount of the line, before tax.")
    tax = AmountField("tax_minor", help_text="Tax on the amount, not included in it.")
    answer = serializers.CharField(help_text="Answer of the operator.")
    credit_note = serializers.CharField(source="credit_note_id", allow_null=True)
    steps = DisputeStepOut(many=True)

    class Meta:
        model = Dispute
        fields = ("id", "invoice", "line", "amount", "tax", "status", "reason", "answer", "credit_note",
                  "opened_at", "opened_by", "closed_at", "steps")  # fmt: skip


class DisputedLineIn(StrictSerializer):
    line = serializers.IntegerField(min_value=1, max_value=MAX_LINE_NUMBER, help_text="Line number on the invoice.")
    amount = serializers.CharField(
        max_length=MAX_AMOUNT_LENGTH,
        required=False,
        help_text="Amount before tax, for example 12.50. Default: the rest of the line.",
    )


class DisputeCreate(StrictSerializer):
    invoice = serializers.CharField(max_length=40)
    lines = serializers.ListField(child=DisputedLineIn(), max_length=dispute_requests.MAX_LINES)
    reason = serializers.CharField(max_length=MAX_REASON_LENGTH)


class DisputeRows(RowViewSet):
    """Disputes, as tenants and operators list them."""

    rows = Dispute.objects.select_related("tenant", "line__invoice").prefetch_related(
        Prefetch("steps", DisputeStep.objects.select_related("dispute").order_by("n"))
    )
    filters = {
        "invoice": QueryFilter("invoice_id"),
        "status": QueryFilter("status", choices=tuple(DisputeStatus.values)),
    }


class DisputeViewSet(DisputeRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Disputes of the whole tenant."""

    serializer_class = ChargeDisputeOut
    actions_needed = needs("billing.read", "list", "retrieve") | needs("billing.write", "create", "withdraw")

    @extend_schema(request=DisputeCreate, responses={201: page_of(ChargeDisputeOut, "ChargeDisputePage")})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Dispute lines of a final invoice, within its window; each line is answered separately.

        It books nothing. Until it is answered the amount is not collected, and no payment starts automatically.
        """
        body = validated_body(DisputeCreate, request)
        found = Invoice.objects.filter(tenant=self.request.tenant, pk=body["invoice"]).first()
        if found is None:
            raise InvalidValue("invoice", "The invoice was not found.", fix="Select it from the list of invoices.")
        named = [each["line"] for each in body["lines"]]
        if twice := next((n for n in named if named.count(n) > 1), None):
            raise InvalidValue("lines", f"Line {twice} is listed twice.", fix="List each line once.")
        made = dispute_requests.dispute_lines(
            found,
            lines={
                each["line"]: dispute_requests.parse_optional_amount(each.get("amount"), found.currency)
                for each in body["lines"]
            },
            reason=body["reason"],
            **self.by,
        )
        shown = self.rows.filter(pk__in=[each.pk for each in made]).order_by("line__n")
        return Response(complete_page(ChargeDisputeOut(shown, many=True).data).data, status=201)

    @extend_schema(request=None, responses=ChargeDisputeOut)
    @action(detail=True, methods=["post"])
    @idempotent()
    def withdraw(self, request: Request, pk: str) -> Response:
        """Withdraw an open dispute; the line can be disputed again within the window."""
        done = dispute_requests.withdraw_dispute(self.get_object(), **self.by)
        return Response(ChargeDisputeOut(self.rows.get(pk=done.pk)).data)
