"""Lists of the accounting page: their filters, sums and CSV columns."""

from django.utils.translation import gettext_lazy

from billing.services.reports.accounting.debtor_accounts import DebtorAccount
from billing.services.reports.accounting.month_end import (
    AGEING_HEADS,
    DEFERRED_HEADS,
    UNBILLED_HEADS,
    DeferredRevenue,
    OpenInvoice,
    UnbilledMonth,
)
from billing.services.reports.accounting.vat_report import VatLine
from web.portal.operators.list_specs import ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time


def _open_cells(each: OpenInvoice) -> tuple[object, ...]:
    return (
        *(each.tenant_id, each.tenant, each.invoice_id, each.number, each.month, csv_time(each.finalized_at)),
        *(csv_time(each.due_at), each.currency, csv_money(each.total, each.currency)),
        *(csv_money(each.minor, each.currency), each.days_overdue, each.age),
    )


def _unbilled_cells(each: UnbilledMonth) -> tuple[object, ...]:
    return (
        *(each.tenant_id, each.tenant, each.month, each.invoice_id, each.number, csv_time(each.finalized_at)),
        *(each.currency, csv_money(each.minor, each.currency)),
    )


def _deferred_cells(each: DeferredRevenue) -> tuple[object, ...]:
    amounts = (csv_money(minor, each.currency) for minor in (each.prepaid, each.granted))
    return each.tenant_id, each.tenant, each.currency, *amounts


def _customer_cells(each: VatLine) -> tuple[object, ...]:
    return each.tenant_id, each.tenant, each.vat_id, each.country, each.currency, csv_money(each.net, each.currency)


def _debtor_cells(each: DebtorAccount) -> tuple[object, ...]:
    return each.tenant_id, each.tenant, each.number


DEBTOR_LIST = OperatorList(
    name="debtor-accounts",
    heads="tenant tenant_name account",
    cells=_debtor_cells,
    tenant="tenant_id",
    tenant_name="tenant",
    search=("number", "tenant"),
)
OPEN_LIST = OperatorList(
    name="open",
    heads=" ".join(AGEING_HEADS),
    cells=_open_cells,
    tenant="tenant_id",
    tenant_name="tenant",
    at="due_at",
    search=("number", "invoice_id"),
    sums=(ListSum(gettext_lazy("Open"), "minor"),),
)
UNBILLED_LIST = OperatorList(
    name="unbilled",
    heads=" ".join(UNBILLED_HEADS),
    cells=_unbilled_cells,
    tenant="tenant_id",
    tenant_name="tenant",
    at="finalized_at",
    search=("month", "number", "invoice_id"),
    sums=(ListSum(gettext_lazy("Total"), "minor"),),
)
DEFERRED_LIST = OperatorList(
    name="deferred",
    heads=" ".join(DEFERRED_HEADS),
    cells=_deferred_cells,
    tenant="tenant_id",
    tenant_name="tenant",
    sums=(
        ListSum(gettext_lazy("Prepaid balance"), "prepaid"),
        ListSum(gettext_lazy("Granted credit"), "granted"),
    ),
)
CUSTOMER_LIST = OperatorList(
    name="customers",
    heads="tenant tenant_name vat_id country currency net",
    cells=_customer_cells,
    tenant="tenant_id",
    tenant_name="tenant",
    search=("vat_id", "country"),
    sums=(ListSum(gettext_lazy("Net"), "net"),),
)
