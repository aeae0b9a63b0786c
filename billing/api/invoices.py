"""Invoices: months of the whole tenant, their lines, and what made each line."""

from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api import bundles, cost_allocation, papers
from billing.api.amounts import MoneyOut, exact, hourly, money
from billing.api.details import PartyOut
from billing.api.payments import PaymentOut
from billing.domain.explain import fraction
from billing.domain.tax import Treatment, per_cent
from billing.models import DunningStep, Invoice, InvoiceLine, InvoiceStatus, InvoiceTax, MonthKind
from billing.services.disputes import window
from billing.services.explain import Explained, LeaseUse, explain
from billing.services.exports import sheets
from billing.services.papers import keeping
from billing.services.payments import opening
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.views import TenantViewSet

MOST_LEASES = 200
UTC_MOMENT = serializers.DateTimeField()
NUMBERS = 9  # digits of a line's number that can be meant


class TaxOut(serializers.ModelSerializer[InvoiceTax]):
    """The tax on all that is charged of a category; a rate of null is owed and not known yet, on a draft."""

    per_cent = serializers.SerializerMethodField()
    net = serializers.SerializerMethodField()
    tax = serializers.SerializerMethodField()

    class Meta:
        model = InvoiceTax
        fields = ("category", "per_cent", "net", "tax")

    @extend_schema(responses=serializers.CharField(allow_null=True))
    def get_per_cent(self, tax: InvoiceTax) -> str | None:
        return None if tax.rate_bp is None else per_cent(tax.rate_bp)

    @extend_schema(responses=MoneyOut)
    def get_net(self, tax: InvoiceTax) -> dict[str, str]:
        return money(tax.net, tax.invoice.currency)

    @extend_schema(responses=MoneyOut)
    def get_tax(self, tax: InvoiceTax) -> dict[str, str]:
        return money(tax.tax, tax.invoice.currency)


class ReminderOut(serializers.ModelSerializer[DunningStep]):
    """What was done because it was not paid in time: `remind`, `suspend` or `end`."""

    due = serializers.SerializerMethodField(help_text="What was still to be paid then.")

    class Meta:
        model = DunningStep
        fields = ("action", "due", "done_at")

    @extend_schema(responses=MoneyOut)
    def get_due(self, step: DunningStep) -> dict[str, str]:
        return money(step.minor, step.invoice.currency)


class InvoiceOut(serializers.ModelSerializer[Invoice]):
    """A month. A draft changes every half minute; a final invoice never, but what of it is settled and due."""

    number = serializers.SerializerMethodField()
    month = serializers.CharField(source="period.label")
    start = serializers.DateTimeField(source="period.span.lower")
    end = serializers.DateTimeField(source="period.span.upper")
    time_zone = serializers.CharField(source="period.time_zone")
    subtotal = serializers.SerializerMethodField(help_text="What its lines come to, before tax.")
    tax = serializers.SerializerMethodField()
    total = serializers.SerializerMethodField()
    taxes = TaxOut(many=True)
    reminders = ReminderOut(many=True)
    treatment = serializers.ChoiceField(choices=[each.value for each in Treatment], allow_blank=True)
    customer = PartyOut(allow_null=True, help_text="Who it is made out to, once it is final.")
    supplier = PartyOut(allow_null=True)
    settled = serializers.SerializerMethodField(
        help_text="Of it, what is due no longer though nobody paid it: credited, or drawn from grants or your balance."
    )
    due = serializers.SerializerMethodField(help_text="What is still to be paid; of a draft nothing is yet.")

    disputable_until = serializers.SerializerMethodField(help_text="Before when its lines can be disputed.")

    class Meta:
        model = Invoice
        fields = (
            "id",
            "number",
            "status",
            "month",
            "start",
            "end",
            "time_zone",
            "subtotal",
            "tax",
            "total",
            "taxes",
            "treatment",
            "customer",
            "supplier",
            "settled",
            "due",
            "due_at",
            "disputable_until",
            "reminders",
            "refreshed_at",
            "finalized_at",
            "paid_at",
        )

    @extend_schema(responses=serializers.DateTimeField(allow_null=True))
    def get_disputable_until(self, invoice: Invoice) -> str | None:
        until = window.closes_at(invoice)
        return UTC_MOMENT.to_representation(until) if until else None

    def get_number(self, invoice: Invoice) -> str | None:
        return str(invoice) if invoice.number else None

    @extend_schema(responses=MoneyOut)
    def get_subtotal(self, invoice: Invoice) -> dict[str, str]:
        return money(invoice.subtotal, invoice.currency)

    @extend_schema(responses=MoneyOut)
    def get_tax(self, invoice: Invoice) -> dict[str, str]:
        return money(invoice.tax, invoice.currency)

    @extend_schema(responses=MoneyOut)
    def get_total(self, invoice: Invoice) -> dict[str, str]:
        return money(invoice.total, invoice.currency)

    @extend_schema(responses=MoneyOut)
    def get_settled(self, invoice: Invoice) -> dict[str, str]:
        return money(invoice.settled, invoice.currency)

    @extend_schema(responses=MoneyOut)
    def get_due(self, invoice: Invoice) -> dict[str, str]:
        return money(invoice.due, invoice.currency)


def with_taxes(invoices: QuerySet[Invoice]) -> QuerySet[Invoice]:
    """Have each invoice's taxes and reminders at hand; two queries more."""
    return invoices.prefetch_related(
        Prefetch("taxes", InvoiceTax.objects.order_by("category")),
        Prefetch("reminders", DunningStep.objects.order_by("n")),
    )


class LineOut(serializers.ModelSerializer[InvoiceLine]):
    """Everything one project used of one offering at one price; `amount` is `exact` rounded once, half up."""

    project = serializers.CharField(source="project_id", help_text="Empty: of the whole tenant.")
    offering = serializers.SerializerMethodField(
        help_text="None of a line that the month adds: see its kind."
    )
    price_version = serializers.SerializerMethodField()
    exact = serializers.SerializerMethodField()
    month = serializers.SerializerMethodField(
        help_text="Of `exact`, what the month takes off, less than nought, or adds beside the seconds."
    )
    amount = serializers.SerializerMethodField()
    tax = serializers.SerializerMethodField(
        help_text="Its part of the tax on its category, beside the amount."
    )

    class Meta:
        model = InvoiceLine
        fields = (
            "n",
            "kind",
            "project",
            "offering",
            "price_version",
            "leases",
            "unit_seconds",
            "given_back_s",
            "exact",
            "month",
            "amount",
            "tax_category",
            "tax",
        )

    def get_offering(self, line: InvoiceLine) -> str | None:
        return line.offering_id if line.is_usage else None

    def get_price_version(self, line: InvoiceLine) -> str | None:
        return str(line.price_version_id) if line.is_usage else None

    @extend_schema(responses=MoneyOut)
    def get_month(self, line: InvoiceLine) -> dict[str, str]:
        return exact(int(line.month_num), line.invoice.currency)

    @extend_schema(responses=MoneyOut)
    def get_exact(self, line: InvoiceLine) -> dict[str, str]:
        return exact(int(line.exact_num), line.invoice.currency)

    @extend_schema(responses=MoneyOut)
    def get_amount(self, line: InvoiceLine) -> dict[str, str]:
        return money(line.minor, line.invoice.currency)

    @extend_schema(responses=MoneyOut)
    def get_tax(self, line: InvoiceLine) -> dict[str, str]:
        return money(line.tax_minor, line.invoice.currency)


class WindowOut(serializers.Serializer[Any]):
    """A stretch of a lease's life within the line's months."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    state = serializers.CharField()
    seconds = serializers.IntegerField()
    quantity = serializers.IntegerField()
    charged = serializers.BooleanField()
    why = serializers.CharField()


class LeaseUseOut(serializers.Serializer[Any]):
    """One lease's part; a quote that it cites fixed its price, whatever the list said while it ran."""

    lease = serializers.CharField()
    name = serializers.CharField()
    quote = serializers.CharField(allow_null=True)
    unit_seconds = serializers.IntegerField()
    windows = WindowOut(many=True)


class PriceOut(serializers.Serializer[Any]):
    version = serializers.CharField()
    per_hour = MoneyOut()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True)


class CarriedOut(serializers.Serializer[Any]):
    """What the month took off the line, or added: `amount` of `base`, which is what those before it had left."""

    kind = serializers.ChoiceField(choices=MonthKind.choices)
    by = serializers.CharField(help_text="What it follows from: a discount, an agreement, a price version.")
    name = serializers.CharField()
    base = MoneyOut()
    amount = MoneyOut()


class ExplainOut(serializers.Serializer[Any]):
    """What ran, at which price, by which rule; `recomputed_equal` compares with a second reckoning."""

    line = LineOut()
    offering_label = serializers.CharField()
    price = PriceOut(allow_null=True)
    month = CarriedOut(many=True)
    leases = LeaseUseOut(many=True)
    leases_total = serializers.IntegerField()
    rule = serializers.CharField()
    fraction = serializers.CharField()
    recomputed = MoneyOut()
    recomputed_equal = serializers.BooleanField()


class Invoices(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Invoices are the whole tenant's, whatever project used what."""

    serializer_class = InvoiceOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {
        "status": Filter("status", choices=tuple(InvoiceStatus.values)),
        "month": Filter("period__label"),
    }
    actions_needed = {
        "list": "billing.read",
        "retrieve": "billing.read",
        "lines": "billing.read",
        "explain": "billing.read",
        "bundle": "billing.read",
        "pdf": "billing.read",
        "exports": "billing.read",
        "cost_allocation": "billing.read",
        "pay": "billing.write",
    }

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[Invoice]:
        return self.visible(with_taxes(Invoice.objects.select_related("period", "tenant")))

    @extend_schema(responses=LineOut(many=True), filters=False)
    @action(detail=True)
    def lines(self, request: Request, pk: str) -> Response:
        """Return the lines, by number."""
        self.sorts = ("n",)  # type: ignore[misc]  # of this action alone
        lines = InvoiceLine.objects.filter(invoice=self.get_object()).select_related("invoice")
        page = self.paginate_queryset(lines) or []
        return self.get_paginated_response(LineOut(page, many=True).data)

    @extend_schema(responses=ExplainOut, filters=False)
    @action(detail=True, url_path=r"lines/<str:n>/explain", pagination_class=None)
    def explain(self, request: Request, pk: str, n: str) -> Response:
        """Open a line to the seconds, the price and the rounding that made it; its first 200 leases in detail."""
        number = int(n) if n.isascii() and n.isdigit() and len(n) <= NUMBERS else 0
        lines = InvoiceLine.objects.select_related("invoice").filter(invoice=self.get_object(), n=number)
        if (line := lines.first()) is None:
            raise Http404
        return Response(_shown(explain(line, most=MOST_LEASES)))

    @extend_schema(responses=bundles.BundleOut, filters=False)
    @action(detail=True, pagination_class=None)
    def bundle(self, request: Request, pk: str) -> HttpResponseBase:
        """Return everything that the invoice follows from, as a file that anybody can check it by.

        The program that does so is given out at `/invoices/verify.py`. A final invoice has the same bytes for ever.
        """
        return bundles.sent(self.get_object())

    @extend_schema(responses=papers.PDF, filters=False)
    @action(detail=True, pagination_class=None, renderer_classes=papers.RENDERERS)
    def pdf(self, request: Request, pk: str) -> HttpResponseBase:
        """Return the invoice as PDF. A final invoice has the same bytes for ever; a draft is marked as one."""
        return papers.sent(request, keeping.invoice_paper(self.get_object(), now=self.now))

    @extend_schema(responses=papers.CSV, filters=False)
    @action(
        detail=True,
        url_path="exports/<str:kind>",
        pagination_class=None,
        renderer_classes=papers.RENDERERS,
    )
    def exports(self, request: Request, pk: str, kind: str) -> HttpResponseBase:
        """Return its lines, its charges or its charges in the shape of FOCUS 1.2 as CSV: `lines`, `charges`, `focus`.

        What is billed for charges, and for the tax on each line, adds up to the invoice's total to the last decimal.
        """
        if kind not in sheets.KINDS:
            raise Http404
        found = self.get_object()
        return papers.sheet(sheets.file_name(found, kind), sheets.text(found, kind))

    @extend_schema(
        responses=cost_allocation.CostAllocationOut, filters=False, parameters=cost_allocation.ASKED
    )
    @action(detail=True, url_path="cost-allocation", pagination_class=None)
    def cost_allocation(self, request: Request, pk: str) -> Response:
        """Tell whom it falls to: by project, by who asked for the leases, or by a tag of theirs."""
        return Response(cost_allocation.told(self.get_object(), request))

    @extend_schema(request=None, responses={202: PaymentOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def pay(self, request: Request, pk: str) -> Response:
        """Pay all that is due on a final invoice; the payment is pending until the gateway has answered.

        Where one is stuck, the same payment goes on: another could take the money twice.
        """
        payment = opening.pay(self.get_object(), actor=self.request.actor, now=self.now)
        where = {"Location": f"/api/v1/payments/{payment.pk}"}
        return Response(PaymentOut(payment).data, status=202, headers=where)


def _shown(told: Explained) -> dict[str, Any]:
    currency = told.invoice.currency
    return {
        "line": LineOut(told.line).data,
        "offering_label": told.what,
        "price": told.price
        and {
            "version": str(told.price.version),
            "per_hour": hourly(told.price.nano_per_hour, currency),
            "since": told.price.since,
            "until": told.price.until,
        },
        "month": [
            {
                "kind": each.kind,
                "by": each.source,
                "name": each.label,
                "base": exact(int(each.base_num), currency),
                "amount": exact(int(each.exact_num), currency),
            }
            for each in told.month
        ],
        "leases": [_use(use) for use in told.leases],
        "leases_total": told.leases_total,
        "rule": _rule(told),
        "fraction": fraction(int(told.line.exact_num)),
        "recomputed": money(told.recomputed_minor, currency),
        "recomputed_equal": told.recomputed_equal,
    }


def _rule(told: Explained) -> str:
    """Write the reckoning of its seconds; it is rounded there only if nothing else is on its line."""
    if told.rule is None:
        return told.what
    return told.rule.sum.partition(" → ")[0] if told.month or told.corrected else told.rule.sum


def _use(use: LeaseUse) -> dict[str, Any]:
    return {
        "lease": use.lease,
        "name": use.name,
        "quote": use.quote and use.quote.pk,
        "unit_seconds": use.unit_seconds,
        "windows": WindowOut(use.windows, many=True).data,
    }
