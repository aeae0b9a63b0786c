"""A grant as a call answers it: credit that was given, what is left of it, and what it paid."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from billing.api.amounts import MoneyOut, money
from billing.models import Grant, GrantDraw, GrantReturn
from billing.services.grants.purse import Stands, State

TOLD = "told"  # where a grant of a page keeps how it stands


class CreditDrawOut(serializers.ModelSerializer[GrantDraw]):
    """What it paid of one line of an invoice that became final."""

    invoice = serializers.CharField(source="invoice_id")
    line = serializers.IntegerField(source="line.n", help_text="The line's number on its invoice.")
    amount = serializers.SerializerMethodField()

    class Meta:
        model = GrantDraw
        fields = ("id", "invoice", "line", "amount", "at")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, draw: GrantDraw) -> dict[str, str]:
        return money(draw.minor, draw.grant.currency)


class CreditReturnOut(serializers.ModelSerializer[GrantReturn]):
    """What of a credit note came back to it; nobody's, where it had lapsed by then."""

    credit_note = serializers.CharField(source="credit_note_id")
    amount = serializers.SerializerMethodField()

    class Meta:
        model = GrantReturn
        fields = ("id", "credit_note", "amount", "lapsed")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, each: GrantReturn) -> dict[str, str]:
        return money(each.minor, each.grant.currency)


class CreditOut(serializers.ModelSerializer[Grant]):
    """Credit. The lowest `priority` pays first, and of these what ends first; before any money does."""

    project = serializers.CharField(
        source="project_id", allow_null=True, help_text="It pays there and below only; null: everywhere."
    )
    offering = serializers.CharField(
        source="offering_id", allow_null=True, help_text="It pays for this only; null: for everything."
    )
    expires_at = serializers.DateTimeField(
        allow_null=True,
        help_text="It pays what is used before this; what is left then lapses with its month.",
    )
    state = serializers.SerializerMethodField()
    amount = serializers.SerializerMethodField()
    left = serializers.SerializerMethodField()
    paid = serializers.SerializerMethodField(help_text="What it paid, less what came back to it.")
    lapsed = serializers.SerializerMethodField()
    draws = CreditDrawOut(many=True)
    returns = CreditReturnOut(many=True)

    class Meta:
        model = Grant
        fields = (
            "id",
            "state",
            "reason",
            "source",
            "amount",
            "left",
            "paid",
            "lapsed",
            "project",
            "offering",
            "priority",
            "given_at",
            "expires_at",
            "draws",
            "returns",
        )

    def _of(self, grant: Grant) -> Stands:
        found: Stands = grant.__dict__[TOLD]
        return found

    @extend_schema(responses=serializers.ChoiceField([each.value for each in State]))
    def get_state(self, grant: Grant) -> str:
        return str(self._of(grant).state)

    @extend_schema(responses=MoneyOut)
    def get_amount(self, grant: Grant) -> dict[str, str]:
        return money(grant.minor, grant.currency)

    @extend_schema(responses=MoneyOut)
    def get_left(self, grant: Grant) -> dict[str, str]:
        return money(self._of(grant).left, grant.currency)

    @extend_schema(responses=MoneyOut)
    def get_paid(self, grant: Grant) -> dict[str, str]:
        return money(self._of(grant).paid, grant.currency)

    @extend_schema(responses=MoneyOut)
    def get_lapsed(self, grant: Grant) -> dict[str, str]:
        return money(self._of(grant).lapsed, grant.currency)
