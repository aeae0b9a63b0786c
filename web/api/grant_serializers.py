"""Serializers of grants: credit, what is left of it, and what it paid."""

from rest_framework import serializers

from billing.models import Grant, GrantDraw, GrantReturn
from web.api.amounts import AmountField


class GrantDrawOut(serializers.ModelSerializer[GrantDraw]):
    """Amount a grant paid of one line of a final invoice."""

    invoice = serializers.CharField(source="invoice_id")
    line = serializers.IntegerField(source="line.n", help_text="Line number on the invoice.")
    amount = AmountField(of="grant")

    class Meta:
        model = GrantDraw
        fields = ("id", "invoice", "line", "amount", "at")


class GrantReturnOut(serializers.ModelSerializer[GrantReturn]):
    """Amount of a credit note returned to a grant.

    It is lost if the grant had lapsed by then.
    """

    credit_note = serializers.CharField(source="credit_note_id")
    amount = AmountField(of="grant")
    is_lapsed = serializers.BooleanField(source="lapsed")

    class Meta:
        model = GrantReturn
        fields = ("id", "credit_note", "amount", "is_lapsed")


class CreditOut(serializers.ModelSerializer[Grant]):
    """A grant; grants pay before money does.

    The lowest `priority` pays first, and among equals the one that expires first.
    """

    project = serializers.CharField(
        source="project_id",
        allow_null=True,
        help_text="Valid for this project and its sub-projects; null: all projects.",
    )
    offering = serializers.CharField(
        source="offering_id", allow_null=True, help_text="Valid for this offering; null: all offerings."
    )
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Expiry: pays for usage before this time.")
    state = serializers.CharField(source="figures.state", read_only=True)
    amount = AmountField()
    left = AmountField("figures.left")
    paid = AmountField("figures.paid", help_text="Used amount minus returned credit.")
    lapsed = AmountField("figures.lapsed")
    draws = GrantDrawOut(many=True)
    returns = GrantReturnOut(many=True)

    class Meta:
        model = Grant
        fields = ("id", "state", "reason", "source", "amount", "left", "paid", "lapsed", "project", "offering",
                  "priority", "given_at", "expires_at", "draws", "returns")  # fmt: skip
