"""Accounting page: open invoices, revenue to accrue and defer, VAT and files."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import Money
from billing.domain.tax import format_rate_percent
from billing.services.invoicing.month_close import close_checklist
from billing.services.reports.accounting import journal, journal_accounts, month_end, month_exports, vat_report
from billing.services.reports.accounting.vat_report import VatLine
from tenants.services.errors import ObjectNotFound
from web.http import downloads
from web.http.query_strings import LinkOption, link_options
from web.portal.actions import operator_api_call
from web.portal.operators.accounting.accounting_lists import CUSTOMER_LIST, DEFERRED_LIST, OPEN_LIST, UNBILLED_LIST
from web.portal.operators.list_filters import ListFilter
from web.portal.operators.operator_lists import FilteredList, PageLists, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, operator_page

MAX_MONTHS = 6
MAX_ID_LENGTH = 40


@dataclass(frozen=True, slots=True)
class VatRow:
    """VAT of one return, country and rate."""

    line: VatLine
    per_cent: str


@dataclass(frozen=True, slots=True)
class AccountingPage:
    """A month for an accountant, of all tenants or of one."""

    month: str
    at: datetime
    months: list[LinkOption]
    filter: ListFilter
    ages: list[tuple[str, list[tuple[str, Money]], Money]]
    open_invoices: FilteredList
    unbilled: FilteredList
    deferred: FilteredList
    vat: list[VatRow]
    customers: FilteredList
    exports: list[tuple[str, str]]
    calls: list[dict[str, str]]


@operator_page("accounting")
def show_accounting(request: OperatorRequest) -> Any:
    """Show a month, by default the latest that is over, optionally of one tenant."""
    settings = journal_accounts.journal_settings()
    labels = close_checklist.month_labels(now=request.now)[:MAX_MONTHS]
    month = _chosen_month(request, labels)
    at = journal.journal_month(month, settings).until
    if wants_csv(request):
        return _read_lists(request).csv(
            (OPEN_LIST, lambda: month_end.open_invoices(at=at)),
            (UNBILLED_LIST, lambda: month_end.unbilled_months(at=at)),
            (DEFERRED_LIST, lambda: month_end.deferred_revenue(at=at)),
            (CUSTOMER_LIST, lambda: vat_report.sum_by_customer(vat_report.vat_lines(month, month))),
        )
    page = _build_page(request, month, labels, at)
    return render(request, "operators/accounting/accounting.html", {"page": page})


@operator_page("accounting.export")
def download_export(request: OperatorRequest, month: str, kind: str) -> Any:
    """Download a file of a month."""
    if not month_exports.MONTH.fullmatch(month) or kind not in month_exports.EXPORT_NAMES:
        raise ObjectNotFound(
            _("{month} has no export {kind!r}.").format(month=month, kind=kind),
            fix=_("Open the page Accounting and choose a file."),
        )
    settings, tenant = journal_accounts.journal_settings(), request.GET.get("tenant", "")[:MAX_ID_LENGTH]
    days = request.GET.get("first", ""), request.GET.get("last", "")
    return downloads.month_export_response(kind, month, settings, tenant=tenant, days=days, now=request.now)


def _read_lists(request: OperatorRequest) -> PageLists:
    return read_lists(request, OPEN_LIST, UNBILLED_LIST, DEFERRED_LIST, CUSTOMER_LIST)


def _build_page(request: OperatorRequest, month: str, labels: list[str], at: datetime) -> AccountingPage:
    lists = _read_lists(request)
    pk = lists.filter.tenant_id
    owed = month_end.open_invoices(at=at, tenant=pk)
    unbilled = month_end.unbilled_months(at=at, tenant=pk)
    deferred = month_end.deferred_revenue(at=at, tenant=pk)
    vat = vat_report.vat_lines(month, month, tenant=pk)
    query = f"?tenant={pk}" if pk else ""
    return AccountingPage(
        month=month,
        at=at,
        months=link_options(request, "month", [(label, label) for label in labels], month),
        filter=lists.filter,
        ages=[
            (currency, list(zip(month_end.AGE_NAMES, found, strict=True)), total)
            for currency, found, total in month_end.sum_by_age(lists.filter.limit(OPEN_LIST, owed))
        ],
        open_invoices=lists.read(OPEN_LIST, owed),
        unbilled=lists.read(UNBILLED_LIST, unbilled),
        deferred=lists.read(DEFERRED_LIST, deferred),
        vat=[
            VatRow(each, "" if each.rate_bp is None else format_rate_percent(each.rate_bp))
            for each in vat_report.sum_by_return(vat)
        ],
        customers=lists.read(CUSTOMER_LIST, vat_report.sum_by_customer(vat)),
        exports=[
            (reverse("ops-accounting-export", args=[month, kind]) + query, name)
            for kind, name in month_exports.EXPORT_NAMES.items()
        ],
        calls=[operator_api_call(_("This month"), f"ops/accounting/{month}", tenant=pk)],
    )


def _chosen_month(request: OperatorRequest, labels: list[str]) -> str:
    """Return the month in the query string, else the last one that is over."""
    month = request.GET.get("month", "")
    if month_exports.MONTH.fullmatch(month):
        return month
    over = f"{request.now.replace(day=1) - timedelta(days=1):%Y-%m}"
    return next((label for label in labels if label <= over), over)
