"""The books over the API: every transfer of all tenants, and the trial balance; for operators."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, money
from billing.domain.ledger import AccountType
from billing.models import LedgerTransfer, TransferKind
from billing.services.ledger import books
from broker.api.serializers import Whole
from tenants.api.filters import LONGEST, Filter
from tenants.api.operators import AllTenants, whole
from tenants.services import walls

TYPES = [each.value for each in AccountType]


class AccountOut(serializers.Serializer[Any]):
    """One side of a transfer."""

    id = serializers.IntegerField(source="pk")
    type = serializers.ChoiceField(choices=TYPES)


class LedgerTransferOut(serializers.ModelSerializer[LedgerTransfer]):
    """An amount that moved from one account to another. It never changes; a mistake is reversed by another."""

    tenant = serializers.CharField(source="tenant_id")
    debit = AccountOut(source="debit_account")
    credit = AccountOut(source="credit_account")
    amount = serializers.SerializerMethodField()
    ref = serializers.CharField(help_text="The invoice, or whatever else it stands for.")
    reverses = serializers.IntegerField(
        source="reverses_id", allow_null=True, help_text="The transfer that this one takes back."
    )
    idem = serializers.CharField(help_text="What it stands for; there is one transfer of a name.")
    at = serializers.DateTimeField(help_text="When what it stands for happened.")
    recorded_at = serializers.DateTimeField(help_text="When it was written.")

    class Meta:
        model = LedgerTransfer
        fields = (
            "id",
            "tenant",
            "kind",
            "ref",
            "debit",
            "credit",
            "amount",
            "at",
            "recorded_at",
            "reverses",
            "idem",
        )

    @extend_schema(responses=MoneyOut)
    def get_amount(self, transfer: LedgerTransfer) -> dict[str, str]:
        return money(transfer.minor, transfer.currency)


@extend_schema(
    parameters=[OpenApiParameter("ref", str, description="Only what stands for this, such as an invoice.")]
)
class OpsLedgerTransfers(AllTenants):
    """Transfers of all tenants."""

    serializer_class, rows, visit = LedgerTransferOut, LedgerTransfer, "ledger"
    parameters: ClassVar[frozenset[str]] = frozenset({"ref"})
    sorts = ("-id", "id")
    filters = {
        "tenant": Filter("tenant_id"),
        "kind": Filter("kind", choices=tuple(TransferKind.values)),
    }

    def get_queryset(self) -> QuerySet[LedgerTransfer]:
        return LedgerTransfer.objects.select_related("debit_account", "credit_account")

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found, ref = super().filter_queryset(queryset), self.request.query_params.get("ref", "")
        if len(ref) > LONGEST:
            raise ValidationError({"ref": f"May have at most {LONGEST} characters."})
        return found.about(ref) if ref else found  # type: ignore[attr-defined]


class BalanceOut(serializers.Serializer[Any]):
    """What is on all accounts of a type in one currency, on the side where the sum stands."""

    type = serializers.ChoiceField(choices=TYPES)
    currency = serializers.CharField()
    accounts = serializers.IntegerField()
    debit = MoneyOut()
    credit = MoneyOut()


@extend_schema_serializer(many=False)
class TrialBalance(Whole):
    items = BalanceOut(many=True)


class OpsTrialBalance(AllTenants):
    """The trial balance: in every currency, all debits are all credits."""

    serializer_class, visit, pagination_class, filter_backends = BalanceOut, "ledger", None, []

    @extend_schema(operation_id="ops_trial_balance_list", responses=TrialBalance)
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Add up every balance now."""
        with walls.as_staff():
            lines = [line for totals in books.trial_balance() for line in totals.lines]
        return whole(
            [
                {
                    "type": line.type,
                    "currency": line.currency,
                    "accounts": line.accounts,
                    "debit": money(line.debit, line.currency),
                    "credit": money(line.credit, line.currency),
                }
                for line in lines
            ]
        )
