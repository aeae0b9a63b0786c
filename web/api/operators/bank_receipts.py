"""Operators' API of bank transfers, imported bank statements and their entries."""

from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from billing.models import BankEntry, BankEntryStatus, BankReceipt, BankReceiptPart, BankStatement
from billing.services.payments.bank_statements import entry_matching
from web.api.amounts import AmountField, money_out
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, TenantNamed
from web.http.filters import QueryFilter


class BankReceiptPartOut(serializers.ModelSerializer[BankReceiptPart]):
    """What a transfer paid of an invoice."""

    invoice = serializers.CharField(source="invoice_id")
    number = serializers.CharField(source="invoice")
    amount = AmountField(of="invoice")

    class Meta:
        model = BankReceiptPart
        fields = ("invoice", "number", "amount", "at", "recovered")


class OperatorBankReceiptOut(TenantNamed):
    """A bank transfer: what it paid, and what it left on the balance."""

    amount = AmountField()
    left = serializers.SerializerMethodField(help_text="What pays no invoice; it is on the balance.")
    invoices = BankReceiptPartOut(many=True, source="parts")

    class Meta:
        model = BankReceipt
        fields = ("id", "amount", "left", "received_on", "reference", "payer", "payer_account", "waits", "invoices",
                  "recorded_at", "recorded_by", "reversed_at", "reversed_by", "reversal_reason")  # fmt: skip

    @extend_schema(responses=dict[str, str])
    def get_left(self, receipt: BankReceipt) -> dict[str, str]:
        return money_out(receipt.minor - sum(part.minor for part in receipt.parts.all()), receipt.currency)


class OperatorBankReceiptViewSet(CrossTenantViewSet):
    """Money of all tenants that came in by bank transfer."""

    area = "billing"
    serializer_class, audit_action = OperatorBankReceiptOut, "bank-receipts"
    rows = BankReceipt.objects.select_related("tenant").prefetch_related(
        Prefetch("parts", BankReceiptPart.objects.select_related("invoice__period").order_by("at", "pk"))
    )
    filters = TENANT_FILTER | {
        "waits": QueryFilter("waits", "flag"),
        "reversed": QueryFilter("reversed_at__isnull", "flag_not"),
        "since": QueryFilter("recorded_at__gte", "moment"),
        "until": QueryFilter("recorded_at__lt", "moment"),
    }


class BankStatementOut(serializers.ModelSerializer[BankStatement]):
    """An imported file, with how many of its entries were new."""

    class Meta:
        model = BankStatement
        fields = ("id", "file_name", "format", "sha256", "entries_found", "entries_new", "imported_at", "imported_by")


class OperatorBankStatementViewSet(CrossTenantViewSet):
    """Imported bank statements."""

    area = "billing"
    serializer_class, rows, audit_action = BankStatementOut, BankStatement.objects.all(), "bank-entries"


class EntryProposalOut(serializers.Serializer[Any]):
    """Whose money an entry may be, and which invoices it may pay, in order."""

    tenant = serializers.CharField(source="tenant_id")
    invoices = serializers.SerializerMethodField()
    basis = serializers.CharField()
    exact = serializers.BooleanField(help_text="It names the invoices and pays exactly what is due.")

    @extend_schema(responses=serializers.ListField(child=serializers.CharField()))
    def get_invoices(self, match: Any) -> list[str]:
        return [invoice.id for invoice in match.invoices]


class BankEntryOut(serializers.ModelSerializer[BankEntry]):
    """A movement on our account, and what an operator may confirm about it."""

    statement = serializers.CharField(source="statement_id")
    amount = AmountField()
    proposal = serializers.SerializerMethodField()

    class Meta:
        model = BankEntry
        fields = ("id", "statement", "account", "booked_on", "amount", "incoming", "returned", "counterparty",
                  "counterparty_account", "end_to_end_id", "bank_reference", "references", "remittance", "status",
                  "proposal", "receipt", "reason", "decided_at", "decided_by")  # fmt: skip

    @extend_schema(responses=EntryProposalOut(allow_null=True))
    def get_proposal(self, entry: BankEntry) -> Any:
        match = self.context["proposed"].get(entry.pk)
        return match and EntryProposalOut(match).data


class OperatorBankEntryViewSet(CrossTenantViewSet):
    """Entries of bank statements; those that wait for a decision are `status=open`."""

    area = "billing"
    serializer_class, rows, audit_action = BankEntryOut, BankEntry.objects.all(), "bank-entries"
    filters = {"status": QueryFilter("status", choices=tuple(BankEntryStatus.values))}

    def prepare(self, rows: list[Any]) -> list[Any]:
        self.beside = {"proposed": {each.entry.pk: each.match for each in entry_matching.propose(rows)}}
        return rows
