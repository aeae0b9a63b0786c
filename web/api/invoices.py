"""API of invoices, their lines, and what each line is computed from."""

from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from django.db.models import Prefetch, QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.line_explanations import format_fraction
from billing.domain.tax import TaxTreatment, format_rate_percent
from billing.models import AdjustmentKind, DunningStep, Invoice, InvoiceLine, InvoiceStatus, InvoiceTax
from billing.services.documents import csv_exports, document_store
from billing.services.documents.focus import focus_months
from billing.services.payments import disputed_amounts, payment_creation
from billing.services.reports.accounting.month_exports import MONTH
from billing.services.reports.line_explanations import ExplainedLine, LeaseExplanation, explain_invoice_line
from tenants.services import rls
from tenants.services.errors import InvalidValue
from web.api import cost_allocation, documents, invoice_bundles
from web.api.amounts import (
    AmountField,
    ExactAmountField,
    MoneyOut,
    PriceOut,
    hourly_price_out,
    money_out,
    running_total_out,
)
from web.api.base_views import RowViewSet, WholeTenantViewSet, needs
from web.api.billing_details import BankAccountOut, PartyOut
from web.api.payments import PaymentOut
from web.http import downloads
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

MAX_LEASES = 200
MONTH_PARAMETER = OpenApiParameter("month", str, description="Such as `2026-10`.")
UTC_DATETIME_FIELD = serializers.DateTimeField()
MAX_LINE_DIGITS = 9  # maximum digits of a line number


class InvoiceTaxOut(serializers.ModelSerializer[InvoiceTax]):
    """Tax on the charges of a category.

    A null rate, on a draft, is owed and not yet known.
    """

    percent = serializers.SerializerMethodField()
    net = AmountField("net", of="invoice")
    tax = AmountField("tax", of="invoice")

    class Meta:
        model = InvoiceTax
        fields = ("category", "percent", "net", "tax")

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_percent(self, tax: InvoiceTax) -> str | None:
        return None if tax.rate_bp is None else format_rate_percent(tax.rate_bp)


class ReminderOut(serializers.ModelSerializer[DunningStep]):
    """Dunning step of an overdue invoice: `remind`, `suspend` or `end`."""

    due = AmountField(of="invoice", help_text="Amount due at that time.")

    class Meta:
        model = DunningStep
        fields = ("action", "due", "done_at")


class InvoiceOut(serializers.ModelSerializer[Invoice]):
    """An invoice of one month.

    A draft is refreshed every half minute; of a final invoice only its state and what is paid change.
    """

    number = serializers.SerializerMethodField()
    month = serializers.CharField(source="period.label")
    since = serializers.DateTimeField(source="period.span.lower")
    until = serializers.DateTimeField(source="period.span.upper")
    time_zone = serializers.CharField(source="period.time_zone")
    subtotal = AmountField("subtotal", help_text="Sum of the lines, before tax.")
    tax = AmountField("tax")
    total = AmountField("total")
    taxes = InvoiceTaxOut(many=True)
    reminders = ReminderOut(many=True)
    treatment = serializers.ChoiceField(choices=[each.value for each in TaxTreatment], allow_blank=True)
    customer = PartyOut(allow_null=True, help_text="Billed party; set at finalization.")
    supplier = PartyOut(allow_null=True)
    settled = AmountField(
        "settled", help_text="Amount settled without payment: credited, or paid from credits or your balance."
    )
    paid = AmountField("paid", help_text="Amount received by payments and bank transfers.")
    due = AmountField("due", help_text="Amount due; zero for a draft.")
    replaces = serializers.CharField(source="rebills", help_text="ID of the cancelled invoice that it replaces.")
    unobserved_leases = serializers.ListField(
        child=serializers.CharField(), help_text="Leases whose missing usage of the month is on a later invoice."
    )
    bank_account = BankAccountOut(allow_null=True, help_text="Account for bank transfers; set at finalization.")
    payment_reference = serializers.CharField(help_text="What a bank transfer should say; empty for a draft.")

    disputable_until = serializers.SerializerMethodField(help_text="Deadline for disputes.")

    class Meta:
        model = Invoice
        fields = ("id", "number", "status", "month", "since", "until", "time_zone", "subtotal", "tax", "total",
                  "taxes", "treatment", "customer", "supplier", "po_number", "settled", "paid", "due", "due_at",
                  "bank_account", "payment_reference", "replaces", "unobserved_leases", "disputable_until",
                  "reminders", "refreshed_at", "finalized_at", "paid_at")  # fmt: skip

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_disputable_until(self, invoice: Invoice) -> str | None:
        until = disputed_amounts.dispute_window_end(invoice)
        return UTC_DATETIME_FIELD.to_representation(until) if until else None

    def get_number(self, invoice: Invoice) -> str | None:
        return str(invoice) if invoice.number else None


class InvoiceLineOut(serializers.ModelSerializer[InvoiceLine]):
    """Use of one offering by one project at one price.

    `amount` is `exact_amount_out` rounded once, half up.
    """

    line = serializers.IntegerField(source="n", help_text="Line number on the invoice.")
    project = serializers.CharField(source="project_id", help_text="Empty: whole tenant.")
    offering = serializers.SerializerMethodField(help_text="Zero for monthly adjustment lines; see `kind`.")
    price_version = serializers.SerializerMethodField()
    lease_count = serializers.IntegerField(source="leases")
    exact = ExactAmountField("exact_num", of="invoice")
    adjustment = ExactAmountField(
        "month_num", of="invoice", help_text="Monthly adjustment included in `exact`; negative for discounts."
    )
    amount = AmountField(of="invoice")
    tax = AmountField("tax_minor", of="invoice", help_text="Tax on the line, not included in the amount.")

    class Meta:
        model = InvoiceLine
        fields = ("line", "kind", "project", "offering", "price_version", "lease_count", "unit_seconds", "given_back_s",
                  "exact", "adjustment", "amount", "tax_category", "tax")  # fmt: skip

    def get_offering(self, line: InvoiceLine) -> str | None:
        return line.offering_id if line.is_usage else None

    def get_price_version(self, line: InvoiceLine) -> str | None:
        return str(line.price_version_id) if line.is_usage else None


class UsageIntervalOut(serializers.Serializer[Any]):
    """Interval of a lease within the line's months."""

    since = serializers.DateTimeField(source="start")
    until = serializers.DateTimeField(source="end")
    state = serializers.CharField()
    seconds = serializers.IntegerField()
    quantity = serializers.IntegerField()
    charged = serializers.BooleanField()
    reason = serializers.CharField(source="why")


class LeaseUseOut(serializers.Serializer[Any]):
    """Share of one lease.

    A quote that it cites fixed its price, whatever the list price was.
    """

    lease = serializers.CharField()
    name = serializers.CharField()
    quote = serializers.CharField(allow_null=True)
    unit_seconds = serializers.IntegerField()
    intervals = UsageIntervalOut(many=True)


class LinePriceOut(serializers.Serializer[Any]):
    price_version = serializers.CharField()
    price_per_hour = PriceOut()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)


class LineAdjustmentOut(serializers.Serializer[Any]):
    """Adjustment of the line by the month.

    `amount` is of `base`, which is what earlier adjustments left.
    """

    kind = serializers.ChoiceField(choices=AdjustmentKind.choices)
    source = serializers.CharField(  # type: ignore[assignment]  # DRF sets its own per instance
        help_text="Source of the adjustment: a discount, an agreement or a price version."
    )
    name = serializers.CharField()
    base = MoneyOut()
    amount = MoneyOut()


class LineExplanationOut(serializers.Serializer[Any]):
    """Usage, price and rounding of a line.

    `recomputed_equal` compares with an independent computation.
    """

    invoice_line = InvoiceLineOut()
    offering_label = serializers.CharField()
    price = LinePriceOut(allow_null=True)
    adjustments = LineAdjustmentOut(many=True)
    leases = LeaseUseOut(many=True)
    lease_count = serializers.IntegerField()
    rule = serializers.CharField()
    fraction = serializers.CharField()
    recomputed = MoneyOut()
    recomputed_equal = serializers.BooleanField()


class InvoiceRows(RowViewSet):
    """Invoices and their documents, as tenants and operators read them."""

    rows = Invoice.objects.select_related("period", "tenant").prefetch_related(
        Prefetch("taxes", InvoiceTax.objects.order_by("category")),
        Prefetch("reminders", DunningStep.objects.order_by("n")),
    )
    filters = {
        "status": QueryFilter("status", choices=tuple(InvoiceStatus.values)),
        "month": QueryFilter("period__label"),
    }
    action_parameters = {
        "lines": frozenset({"limit", "cursor"}),
        "cost_allocation": frozenset({"group_by", "tag"}),
        "focus": frozenset({"month"}),
        "xrechnung": frozenset({"profile"}),
    }
    line_serializer: ClassVar[type[InvoiceLineOut]] = InvoiceLineOut
    line_rows: ClassVar[QuerySet[InvoiceLine]] = InvoiceLine.objects.select_related("invoice")

    @extend_schema(responses=InvoiceLineOut(many=True), filters=False)
    @action(detail=True)
    def lines(self, request: Request, pk: str) -> Response:
        """Return the lines, by number."""
        self.sorts = ("n",)  # type: ignore[misc]  # for this action only
        with self.read_scope():
            page = self.paginate_queryset(self.line_rows.filter(invoice=self.get_object()))
            return self.get_paginated_response(self.line_serializer(page, many=True).data)

    @extend_schema(responses=documents.PDF, filters=False)
    @action(detail=True, pagination_class=None, renderer_classes=documents.RENDERERS)
    def pdf(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the invoice as PDF; a draft is marked as one.

        The bytes of a final invoice never change.
        """
        with self.read_scope():
            return documents.document_response(request, document_store.invoice_pdf(self.get_object(), now=self.now))

    @extend_schema(responses=documents.XML, parameters=[documents.PROFILE], filters=False)
    @action(detail=True, pagination_class=None, renderer_classes=documents.RENDERERS)
    def xrechnung(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the final invoice as XRechnung (syntax CII) or Factur-X.

        Also for papers from before PDFs contained one; a stored PDF never changes. 409 if supplier or customer lack
        required details.
        """
        with self.read_scope():
            found = self.get_object()
        return documents.e_invoice_response(request, found)

    @extend_schema(responses=documents.CSV, filters=False)
    @action(detail=True, url_path="exports/<str:kind>", pagination_class=None, renderer_classes=documents.RENDERERS)
    def exports(self, request: Request, pk: str, kind: str) -> HttpResponseBase:
        """Return its lines, charges or FOCUS 1.2 charges as CSV: `lines`, `charges`, `focus`.

        Billed amounts of charges, and of the tax on each line, add up to the invoice's total to the last decimal.
        """
        if kind not in csv_exports.EXPORT_KINDS:
            raise Http404
        with self.read_scope():
            found = self.get_object()
        with rls.tenant_scope(found.tenant_id):
            return downloads.streamed_csv_response(
                csv_exports.csv_file_name(found, kind), csv_exports.csv_text(found, kind)
            )


class InvoiceViewSet(InvoiceRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Invoices of the whole tenant, across its projects."""

    serializer_class = InvoiceOut
    actions_needed = needs(
        "billing.read",
        "list",
        "retrieve",
        "lines",
        "explain",
        "bundle",
        "pdf",
        "xrechnung",
        "exports",
        "focus",
        "cost_allocation",
    ) | needs("billing.write", "pay")

    @extend_schema(responses=documents.CSV, filters=False, parameters=[MONTH_PARAMETER])
    @action(detail=False, pagination_class=None, renderer_classes=documents.RENDERERS)
    def focus(self, request: Request) -> HttpResponseBase:
        """Return FOCUS 1.2 of everything billed in a month as CSV, by default this one.

        Invoices of the month, cancelled ones included, and credit notes issued in it; months add up to all of them.
        """
        tenant = self.request.tenant
        month = request.query_params.get("month") or f"{self.now.astimezone(ZoneInfo(tenant.time_zone)):%Y-%m}"
        if not MONTH.fullmatch(month):
            raise InvalidValue("month", f"{month!r} is not a month.", fix="Use a month such as 2026-10.")
        pieces = focus_months.month_csv(month, tenant_id=tenant.pk)
        return downloads.streamed_csv_response(f"focus-{month}.csv", pieces)

    @extend_schema(responses=LineExplanationOut, filters=False)
    @action(detail=True, url_path=r"lines/<str:n>/explain", pagination_class=None)
    def explain(self, request: Request, pk: str, n: str) -> Response:
        """Return the seconds, price and rounding of a line, with its first 200 leases."""
        number = int(n) if n.isascii() and n.isdigit() and len(n) <= MAX_LINE_DIGITS else 0
        lines = InvoiceLine.objects.select_related("invoice").filter(invoice=self.get_object(), n=number)
        if (line := lines.first()) is None:
            raise Http404
        return Response(_explanation_body(explain_invoice_line(line, most=MAX_LEASES)))

    @extend_schema(responses=invoice_bundles.BundleOut, filters=False)
    @action(detail=True, pagination_class=None)
    def bundle(self, request: Request, pk: str) -> HttpResponseBase:
        """Return everything the invoice is computed from, as a file that anybody can verify.

        The program that verifies it is available at `/invoices/verify.py`. The bytes of a final invoice never change.
        """
        return downloads.bundle_response(self.get_object())

    @extend_schema(responses=cost_allocation.CostAllocationOut, filters=False, parameters=cost_allocation.PARAMETERS)
    @action(detail=True, url_path="cost-allocation", pagination_class=None)
    def cost_allocation(self, request: Request, pk: str) -> Response:
        """Return its allocation by project, by requesting user, or by a tag of leases."""
        return Response(cost_allocation.allocation_body(self.get_object(), request))

    @extend_schema(request=None, responses={202: PaymentOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def pay(self, request: Request, pk: str) -> Response:
        """Pay the due amount of a final invoice.

        The payment is pending until the gateway responds. A stuck payment is retried: another could collect the money
        twice.
        """
        payment = payment_creation.open_payment(self.get_object(), **self.by)
        where = {"Location": f"/api/v1/payments/{payment.pk}"}
        return Response(PaymentOut(payment).data, status=202, headers=where)


def _explanation_body(explained: ExplainedLine) -> dict[str, Any]:
    currency = explained.invoice.currency
    return {
        "invoice_line": InvoiceLineOut(explained.line).data,
        "offering_label": explained.title,
        "price": explained.price
        and {
            "price_version": str(explained.price.version),
            "price_per_hour": hourly_price_out(explained.price.nano_per_hour, currency),
            "since": explained.price.since,
            "until": explained.price.until,
        },
        "adjustments": [
            {
                "kind": each.kind,
                "source": each.source,
                "name": each.label,
                "base": running_total_out(int(each.base_num), currency),
                "amount": running_total_out(int(each.exact_num), currency),
            }
            for each in explained.month
        ],
        "leases": [_lease_use_row(use) for use in explained.leases],
        "lease_count": explained.leases_total,
        "rule": _rule_text(explained),
        "fraction": format_fraction(int(explained.line.exact_num)),
        "recomputed": money_out(explained.recomputed_minor, currency),
        "recomputed_equal": explained.recomputed_equal,
    }


def _rule_text(explained: ExplainedLine) -> str:
    """Return the computation of its seconds.

    Rounding is included only if the line has nothing else.
    """
    if explained.rule is None:
        return explained.title
    return explained.rule.sum.partition(" → ")[0] if explained.month or explained.corrected else explained.rule.sum


def _lease_use_row(use: LeaseExplanation) -> dict[str, Any]:
    return {
        "lease": use.lease,
        "name": use.name,
        "quote": use.quote and use.quote.pk,
        "unit_seconds": use.unit_seconds,
        "intervals": UsageIntervalOut(use.windows, many=True).data,
    }
