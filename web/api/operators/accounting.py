"""Operators' API for accountants: a month's open invoices, revenue and VAT, and their files."""

from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.tax import format_rate_percent
from billing.models import Invoice
from billing.services.reports.accounting import journal, journal_accounts, month_end, month_exports, vat_report
from tenants.services import rls
from web.api.amounts import MoneyOut, money_out
from web.api.operators.base_views import CrossTenantViewSet
from web.http import downloads
from web.http.filters import MAX_VALUE_LENGTH

TENANT = OpenApiParameter("tenant", str, description="Only of this tenant.")
JOURNAL_DAYS = [
    OpenApiParameter("first", OpenApiTypes.DATE, description="First day of a `journal` of other days than the month."),
    OpenApiParameter("last", OpenApiTypes.DATE, description="Its last day, at most 366 days later."),
]
FILE = {(200, "text/csv"): OpenApiTypes.BINARY}


class OpenInvoiceOut(serializers.Serializer[Any]):
    """What a tenant owed for an invoice at the month's end."""

    tenant = serializers.CharField()
    tenant_name = serializers.CharField()
    invoice = serializers.CharField()
    number = serializers.CharField()
    month = serializers.CharField()
    due_at = serializers.DateTimeField(allow_null=True)
    days_overdue = serializers.IntegerField()
    age = serializers.CharField()
    total = MoneyOut()
    open = MoneyOut()


class UnbilledMonthOut(serializers.Serializer[Any]):
    """Revenue before tax that no final invoice had billed at the month's end."""

    tenant = serializers.CharField()
    tenant_name = serializers.CharField()
    month = serializers.CharField()
    invoice = serializers.CharField()
    amount = MoneyOut()


class DeferredRevenueOut(serializers.Serializer[Any]):
    """Prepaid balance and granted credit that were not used at the month's end."""

    tenant = serializers.CharField()
    tenant_name = serializers.CharField()
    prepaid = MoneyOut()
    granted = MoneyOut()


class VatLineOut(serializers.Serializer[Any]):
    """Amounts of one treatment, country, rate, currency and customer in the month."""

    tenant = serializers.CharField()
    tenant_name = serializers.CharField()
    vat_return = serializers.CharField()
    treatment = serializers.CharField()
    country = serializers.CharField()
    category = serializers.CharField()
    percent = serializers.CharField(allow_null=True)
    vat_id = serializers.CharField()
    net = MoneyOut()
    tax = MoneyOut()
    tax_own = MoneyOut(allow_null=True, help_text="In the supplier's currency; null without an exchange rate.")
    net_bad_debts = MoneyOut(help_text="Of `net`: what was written off, less what came in since; negative.")
    tax_bad_debts = MoneyOut(help_text="Of `tax`: the same; negative.")
    invoice_count = serializers.IntegerField()
    credit_note_count = serializers.IntegerField()


class AccountingMonthOut(serializers.Serializer[Any]):
    """A month for an accountant; its lists are as of its end."""

    month = serializers.CharField()
    at = serializers.DateTimeField()
    open_invoices = OpenInvoiceOut(many=True)
    unbilled = UnbilledMonthOut(many=True)
    deferred = DeferredRevenueOut(many=True)
    vat = VatLineOut(many=True)


class OperatorAccountingViewSet(CrossTenantViewSet):
    """Accounting of a month such as 2026-10."""

    area = "billing"
    serializer_class, rows, audit_action = AccountingMonthOut, Invoice.objects.all(), "accounting"
    pagination_class, filter_backends = None, []
    action_parameters = {"retrieve": frozenset({"tenant"}), "export": frozenset({"tenant", "first", "last"})}

    @extend_schema(parameters=[TENANT], responses=AccountingMonthOut, filters=False)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return open invoices, unbilled and deferred revenue at its end, and its VAT."""
        tenant = self._check(pk)
        with rls.staff_scope():
            month = journal.journal_month(pk, journal_accounts.journal_settings())
            body = {
                "month": pk,
                "at": month.until,
                "open_invoices": [_open_out(each) for each in month_end.open_invoices(at=month.until, tenant=tenant)],
                "unbilled": [_unbilled_out(each) for each in month_end.unbilled_months(at=month.until, tenant=tenant)],
                "deferred": [_deferred_out(each) for each in month_end.deferred_revenue(at=month.until, tenant=tenant)],
                "vat": [_vat_out(each) for each in vat_report.vat_lines(pk, pk, tenant=tenant)],
            }
        return Response(AccountingMonthOut(body).data)

    @extend_schema(parameters=[TENANT, *JOURNAL_DAYS], responses=FILE, filters=False)
    def export(self, request: Request, pk: str, kind: str) -> HttpResponseBase:
        """Return a file: `journal`, `datev`, `vat`, `open-invoices`, `unbilled`, `deferred` or `focus`.

        `datev` is a booking batch (EXTF, Buchungsstapel) of all tenants. 409 if an account number or exchange rate is
        missing. `focus` is FOCUS 1.2 of all that was billed in the month, streamed.
        """
        tenant = self._check(pk)
        if kind not in month_exports.EXPORT_NAMES:
            raise Http404
        with rls.staff_scope():
            settings = journal_accounts.journal_settings()
            days = request.query_params.get("first", ""), request.query_params.get("last", "")
            return downloads.month_export_response(kind, pk, settings, tenant=tenant, days=days, now=self.now)

    def _check(self, label: str) -> str:
        if not month_exports.MONTH.fullmatch(label):
            raise Http404
        tenant: str = self.request.query_params.get("tenant", "")
        return tenant[:MAX_VALUE_LENGTH]


def _open_out(each: month_end.OpenInvoice) -> dict[str, Any]:
    return {
        **_tenant_out(each.tenant_id, each.tenant),
        "invoice": each.invoice_id,
        "number": each.number,
        "month": each.month,
        "due_at": each.due_at,
        "days_overdue": each.days_overdue,
        "age": each.age,
        "total": money_out(each.total, each.currency),
        "open": money_out(each.minor, each.currency),
    }


def _unbilled_out(each: month_end.UnbilledMonth) -> dict[str, Any]:
    amount = money_out(each.minor, each.currency)
    return {
        **_tenant_out(each.tenant_id, each.tenant),
        "month": each.month,
        "invoice": each.invoice_id,
        "amount": amount,
    }


def _deferred_out(each: month_end.DeferredRevenue) -> dict[str, Any]:
    return {
        **_tenant_out(each.tenant_id, each.tenant),
        "prepaid": money_out(each.prepaid, each.currency),
        "granted": money_out(each.granted, each.currency),
    }


def _vat_out(each: vat_report.VatLine) -> dict[str, Any]:
    return {
        **_tenant_out(each.tenant_id, each.tenant),
        "vat_return": each.return_name,
        "treatment": each.treatment,
        "country": each.country,
        "category": each.category,
        "percent": None if each.rate_bp is None else format_rate_percent(each.rate_bp),
        "vat_id": each.vat_id,
        "net": money_out(each.net, each.currency),
        "tax": money_out(each.tax, each.currency),
        "tax_own": None if each.tax_own is None else money_out(each.tax_own, each.own),
        "net_bad_debts": money_out(each.net_bad_debts, each.currency),
        "tax_bad_debts": money_out(each.tax_bad_debts, each.currency),
        "invoice_count": each.invoices,
        "credit_note_count": each.credit_notes,
    }


def _tenant_out(tenant_id: str, name: str) -> dict[str, Any]:
    return {"tenant": tenant_id, "tenant_name": name}
