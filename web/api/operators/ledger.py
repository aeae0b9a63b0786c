"""Operators' API of the ledger: every transfer of all tenants, and the trial balance."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.journal import account_name
from billing.domain.ledger import AccountType
from billing.models import LedgerAccount, LedgerTransfer, TransferKind
from billing.services.ledger import ledger_balances
from tenants.services import rls
from web.api.amounts import AmountField, MoneyOut, money_out
from web.api.base_views import complete_page
from web.api.lease_serializers import page_of
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet
from web.http.filters import MAX_VALUE_LENGTH, QueryFilter

ACCOUNT_TYPES = [each.value for each in AccountType]


class LedgerAccountOut(serializers.Serializer[Any]):
    """One side of a transfer."""

    id = serializers.CharField(source="pk")
    type = serializers.ChoiceField(choices=ACCOUNT_TYPES)
    name = serializers.SerializerMethodField()

    def get_name(self, account: LedgerAccount) -> str:
        return account_name(account.type)


class LedgerTransferOut(serializers.ModelSerializer[LedgerTransfer]):
    """An amount moved from one account to another.

    It never changes; a mistake is reversed by another transfer.
    """

    id = serializers.CharField(source="pk")
    tenant = serializers.CharField(source="tenant_id")
    debit_account = LedgerAccountOut()
    credit_account = LedgerAccountOut()
    amount = AmountField()
    subject_id = serializers.CharField(source="ref", help_text="ID of the invoice or other object.")
    reverses = serializers.CharField(
        source="reverses_id", allow_null=True, help_text="The transfer that this one reverses."
    )
    idempotency_key = serializers.CharField(source="idem", help_text="Unique name of the booked event.")
    at = serializers.DateTimeField(help_text="When the booked event happened.")
    recorded_at = serializers.DateTimeField(help_text="When it was written.")

    class Meta:
        model = LedgerTransfer
        fields = ("id", "tenant", "kind", "subject_id", "debit_account", "credit_account", "amount", "at",
                  "recorded_at", "reverses", "idempotency_key")  # fmt: skip


SUBJECT = OpenApiParameter("subject_id", str, description="Only transfers of this object, for example an invoice.")


@extend_schema_view(list=extend_schema(parameters=[SUBJECT]))
class OperatorLedgerTransferViewSet(CrossTenantViewSet):
    """Transfers of all tenants."""

    area = "billing"
    serializer_class, audit_action = LedgerTransferOut, "ledger"
    rows = LedgerTransfer.objects.select_related("debit_account", "credit_account")
    parameters = frozenset({"subject_id"})
    filters = TENANT_FILTER | {
        "kind": QueryFilter("kind", choices=tuple(TransferKind.values)),
        "at__gte": QueryFilter("at__gte", "moment"),
        "at__lt": QueryFilter("at__lt", "moment"),
    }

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found, ref = super().filter_queryset(queryset), self.request.query_params.get("subject_id", "")
        if len(ref) > MAX_VALUE_LENGTH:
            raise ValidationError({"subject_id": f"May have at most {MAX_VALUE_LENGTH} characters."})
        return found.for_ref(ref) if ref else found  # type: ignore[attr-defined]


class TrialBalanceLineOut(serializers.Serializer[Any]):
    """Balance of all accounts of a type in one currency, as debit or credit."""

    type = serializers.ChoiceField(choices=ACCOUNT_TYPES)
    name = serializers.CharField()
    currency = serializers.CharField()
    account_count = serializers.IntegerField()
    debit = MoneyOut()
    credit = MoneyOut()


class OperatorTrialBalanceViewSet(CrossTenantViewSet):
    """Trial balance: in every currency, debits equal credits."""

    area = "billing"
    serializer_class, audit_action, pagination_class, filter_backends = TrialBalanceLineOut, "ledger", None, []

    @extend_schema(operation_id="ops_trial_balance_list", responses=page_of(TrialBalanceLineOut, "TrialBalancePage"))
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the sum of every type of account now."""
        with rls.staff_scope():
            lines = [line for totals in ledger_balances.stored_trial_balance() for line in totals.lines]
        return complete_page(
            [
                {
                    "type": line.type,
                    "name": account_name(line.type),
                    "currency": line.currency,
                    "account_count": line.accounts,
                    "debit": money_out(line.debit, line.currency),
                    "credit": money_out(line.credit, line.currency),
                }
                for line in lines
            ]
        )
