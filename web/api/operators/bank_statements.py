"""Operators' API of imported bank statements and their entries."""

import base64
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.models import BankEntry, BankEntryStatus, BankReceipt, BankStatement
from billing.services.payments.bank_receipts.receipt_records import ReceiptUse
from billing.services.payments.bank_statements import entry_decisions, entry_matching, statement_import
from tenants.services.errors import InvalidValue, ObjectNotFound
from web.api.amounts import AmountField
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct, require_field, tenant_or_missing
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class BankStatementOut(serializers.ModelSerializer[BankStatement]):
    """An imported file, with how many of its entries were new."""

    class Meta:
        model = BankStatement
        fields = ("id", "file_name", "format", "sha256", "entries_found", "entries_new", "imported_at", "imported_by")


class BankStatementImport(StrictSerializer):
    file_name = serializers.CharField(max_length=200)
    content = serializers.CharField(max_length=2_800_000, help_text="CAMT.053 or CSV file, in Base64.")
    currency = serializers.CharField(max_length=3, default="", allow_blank=True, help_text="Of a CSV without one.")


class OperatorBankStatementViewSet(CrossTenantViewSet):
    """Imported bank statements."""

    area = "billing"
    serializer_class, rows, audit_action = BankStatementOut, BankStatement.objects.all(), "bank-entries"

    @OperatorAct(BankStatementImport)
    def create(self, body: dict[str, Any]) -> BankStatement:
        """Import a statement, or return the import of the same file.

        Entries seen before are not new.
        """
        try:
            content = base64.b64decode(body["content"], validate=True)
        except ValueError as error:  # also of characters beyond ASCII
            raise InvalidValue("content", "The file is not in Base64.", fix="Encode the file, and send it.") from error
        about = {"file_name": body["file_name"], "currency": body["currency"]}
        return statement_import.import_statement(content, **about, **self.by)


class EntryProposalOut(serializers.Serializer[Any]):
    """Whose money an entry may be, and which invoices it may pay, in order."""

    tenant = serializers.CharField(source="tenant_id")
    invoices = serializers.SerializerMethodField()
    basis = serializers.CharField()
    is_exact = serializers.BooleanField(source="exact", help_text="It names the invoices and pays exactly what is due.")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
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

    @extend_schema_field(EntryProposalOut(allow_null=True))
    def get_proposal(self, entry: BankEntry) -> Any:
        match = self.context["proposed"].get(entry.pk)
        return match and EntryProposalOut(match).data


class BankEntryChange(StrictSerializer):
    """A decision about an entry.

    `booked` with the tenant (or the `receipt` that was returned), `dismissed` with a reason, `open`.
    """

    status = serializers.ChoiceField(choices=["booked", "dismissed", "open"])
    tenant = serializers.CharField(max_length=40, required=False)
    pays = serializers.ChoiceField(choices=[each.value for each in ReceiptUse], default=ReceiptUse.OLDEST.value)
    invoices = serializers.ListField(child=serializers.CharField(max_length=40), default=list, max_length=50)
    receipt = serializers.CharField(max_length=40, required=False, help_text="Transfer that the bank took back.")
    reason = serializers.CharField(max_length=150, required=False)


class OperatorBankEntryViewSet(CrossTenantViewSet):
    """Entries of bank statements; those that wait for a decision are `status=open`."""

    area = "billing"
    serializer_class, rows, audit_action = BankEntryOut, BankEntry.objects.all(), "bank-entries"
    filters = {"status": QueryFilter("status", choices=tuple(BankEntryStatus.values))}

    def prepare(self, rows: list[Any]) -> list[Any]:
        self.beside = {"proposed": {each.entry.pk: each.match for each in entry_matching.propose(rows)}}
        return rows

    @OperatorAct(BankEntryChange)
    def partial_update(self, entry: BankEntry, body: dict[str, Any]) -> BankEntry:
        """Book an entry, dismiss it, or reopen a dismissed one.

        It is booked as its proposal says, or otherwise.
        """
        status = require_field(body, "status")
        if status == "dismissed":
            reason = require_field(body, "reason", fix="Send why it is no money of a tenant.")
            return entry_decisions.dismiss_entry(entry, why=reason, **self.by)
        if status == "open":
            return entry_decisions.reopen_entry(entry, **self.by)
        if body.get("receipt"):
            with self.read_scope():
                receipt = BankReceipt.objects.filter(pk=body["receipt"]).first()
            if receipt is None:
                raise ObjectNotFound("The transfer was not found.", fix="Send the ID of a recorded transfer.")
            entry_decisions.book_returned(entry, receipt, **self.by)
            return entry
        tenant = tenant_or_missing(require_field(body, "tenant", fix="Send the tenant that paid."))
        pays, invoices = ReceiptUse(body.get("pays", ReceiptUse.OLDEST)), tuple(body.get("invoices", ()))
        entry_decisions.book_entry(entry, tenant=tenant, pays=pays, invoices=invoices, **self.by)
        return entry
