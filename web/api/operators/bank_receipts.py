"""Operators' API of money that came in by bank transfer."""

from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.models import BankReceipt, BankReceiptPart, Invoice
from billing.services.payments.bank_receipts import receipt_assignment, receipt_reversal
from billing.services.payments.bank_receipts.receipt_records import ReceiptTerms, ReceiptUse, record_receipt
from ports import ids
from tenants.services.errors import ObjectNotFound
from web.api.amounts import AmountField, MoneyOut, money_out, require_amount
from web.api.operators.base_views import (
    TENANT_FILTER,
    CrossTenantViewSet,
    OperatorAct,
    TenantNamed,
    require_field,
    tenant_or_missing,
)
from web.api.serializer_fields import StrictSerializer
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

    @extend_schema_field(MoneyOut)
    def get_left(self, receipt: BankReceipt) -> dict[str, str]:
        return money_out(receipt.minor - sum(part.minor for part in receipt.parts.all()), receipt.currency)


class BankReceiptCreate(StrictSerializer):
    tenant = serializers.CharField(max_length=40)
    amount = serializers.CharField(max_length=20, help_text="Amount in `currency`, for example 100.00.")
    currency = serializers.CharField(max_length=3, default="", allow_blank=True, help_text="Default: the tenant's.")
    received_on = serializers.DateField(help_text="Day of the bank statement.")
    reference = serializers.CharField(max_length=500, default="", allow_blank=True)
    payer = serializers.CharField(max_length=140, default="", allow_blank=True)
    pays = serializers.ChoiceField(choices=[each.value for each in ReceiptUse], default=ReceiptUse.OLDEST.value)
    invoices = serializers.ListField(
        child=serializers.CharField(max_length=40), default=list, max_length=50, help_text="IDs, paid in this order."
    )


class BankReceiptChange(StrictSerializer):
    """Either an invoice that its rest pays, or its reversal."""

    invoice = serializers.CharField(max_length=40, required=False, help_text="Invoice that what is left pays.")
    reversed = serializers.BooleanField(required=False, help_text="True reverses the transfer.")
    reason = serializers.CharField(max_length=150, required=False, help_text="Of the reversal; the tenant sees it.")


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

    @OperatorAct(BankReceiptCreate)
    def create(self, body: dict[str, Any]) -> BankReceipt:
        """Record a bank transfer.

        It pays the named or the oldest open invoices; the rest is on the balance.
        """
        tenant = tenant_or_missing(body["tenant"])
        currency = body["currency"] or tenant.currency
        terms = ReceiptTerms(
            minor=require_amount("amount", body["amount"], currency),
            currency=currency,
            pays=ReceiptUse(body["pays"]),
            invoices=tuple(body["invoices"]),
            **{name: body[name] for name in ("received_on", "reference", "payer")},
        )
        return record_receipt(tenant, terms, idem=f"api {ids.new('brc')}", **self.by)

    @OperatorAct(BankReceiptChange)
    def partial_update(self, receipt: BankReceipt, body: dict[str, Any]) -> BankReceipt:
        """Assign what is left of a transfer, or reverse the transfer.

        With `invoice`, or with `reversed` and a reason.
        """
        if body.get("reversed"):
            reason = require_field(body, "reason", fix="Send why the transfer is reversed.")
            return receipt_reversal.reverse_receipt(receipt, why=reason, **self.by)
        wanted = require_field(body, "invoice", fix="Send the invoice to pay, or reversed: true.")
        with self.read_scope():
            invoice = Invoice.objects.filter(tenant=receipt.tenant_id, pk=wanted).first()
        if invoice is None:
            raise ObjectNotFound("The invoice was not found.", fix="Send one of the tenant's invoices.")
        return receipt_assignment.assign_rest(receipt, invoice, **self.by)
