"""Bank transfers of all tenants, and the form that records one."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain.money import InvalidAmount, Money, parse_amount
from billing.models import BankReceipt, BankReceiptPart, Invoice
from billing.services.payments.bank_receipts.receipt_records import ReceiptTerms, ReceiptUse, record_receipt
from ports import ids
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.discounts.discount_pages import find_form_tenant
from web.portal.operators.grants.grant_list_page import MAX_TENANTS
from web.portal.operators.list_filters import ListFilter
from web.portal.operators.list_specs import ListState, ListSum, OperatorList
from web.portal.operators.operator_lists import FilteredList, csv_money, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    OperatorRequest,
    form_page,
    operator_page,
)

MAX_OPEN_INVOICES = 50  # of one tenant, in a list to choose from
RECEIPTS = BankReceipt.objects.select_related("tenant").prefetch_related(
    Prefetch("parts", BankReceiptPart.objects.select_related("invoice__period").order_by("at", "pk"))
)


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """A receipt, the invoices it paid, and what it left."""

    receipt: BankReceipt
    left: int

    @property
    def state(self) -> tuple[str, str]:
        """Return its state badge: shape and word."""
        if self.receipt.reversed_at:
            return "void", _("reversed")
        if self.receipt.waits:
            return "queued", _("waits for a card payment")
        return ("paid", _("assigned")) if not self.left else ("partially_paid", _("on the balance"))


def _receipt_cells(each: BankReceipt) -> tuple[object, ...]:
    row = receipt_row(each)
    return (
        *(each.pk, each.tenant_id, each.tenant.name, csv_time(each.received_on), each.payer, each.payer_account),
        *(each.reference, each.currency, csv_money(each.minor, each.currency), csv_money(row.left, each.currency)),
        *(" ".join(str(part.invoice) for part in each.parts.all()), csv_time(each.recorded_at), each.recorded_by),
        *(csv_time(each.reversed_at), each.reversed_by, each.reversal_reason),
    )


RECEIPT_LIST = OperatorList(
    name="bank-receipts",
    heads=(
        "receipt tenant tenant_name received_on payer payer_account reference currency amount on_balance "
        "invoices recorded_at recorded_by reversed_at reversed_by reversal_reason"
    ),
    cells=_receipt_cells,
    tenant="tenant_id",
    at="received_on",
    by_day=True,
    states=(
        ListState("", gettext_lazy("All")),
        ListState("waits", gettext_lazy("Waits for a card payment"), Q(waits=True, reversed_at=None)),
        ListState("reversed", gettext_lazy("Reversed"), Q(reversed_at__isnull=False)),
    ),
    search=("reference", "payer", "payer_account", "pk"),
    sums=(ListSum(gettext_lazy("Received"), "minor"),),
)


@operator_page("bank-receipts", methods=SAFE_OR_POST)
def list_receipts(request: OperatorRequest) -> Any:
    """List bank transfers; a POST records one."""
    if wants_csv(request):
        return read_lists(request, RECEIPT_LIST).csv((RECEIPT_LIST, _receipts))
    return form_page(
        request,
        "operators/bank_receipts/receipts.html",
        lambda _: build_receipt_list(request),
        lambda: _record(request),
        back=reverse("ops-bank-receipts"),
    )


@dataclass(frozen=True, slots=True)
class ReceiptListPage:
    """Bank transfers of all tenants, with the form that records one."""

    listing: FilteredList
    filter: ListFilter
    tenants: list[Tenant]
    chosen: str
    key: str  # of the form: sent twice, it records once
    received_on: str
    pays: str

    @property
    def calls(self) -> list[dict[str, str]]:
        return [
            operator_api_call(
                _("Bank transfers of all tenants"), "ops/bank-receipts", tenant=self.chosen, limit=API_PAGE_SIZE
            )
        ]


def build_receipt_list(request: OperatorRequest) -> ReceiptListPage:
    """Read one page of the receipts, and what the form offers."""
    lists = read_lists(request, RECEIPT_LIST)
    listing = lists.read(RECEIPT_LIST, _receipts())
    return ReceiptListPage(
        listing=listing.with_rows([receipt_row(each) for each in listing.rows]),
        filter=lists.count_states(RECEIPT_LIST, BankReceipt.objects.all()),
        tenants=_listed_tenants(lists.filter.tenant_id),
        chosen=lists.filter.tenant_id,
        key=request.POST.get("key") or ids.new("frm"),
        received_on=request.POST.get("received_on", request.now.date().isoformat()),
        pays=request.POST.get("pays", ReceiptUse.OLDEST.value),
    )


def _receipts() -> QuerySet[BankReceipt]:
    return RECEIPTS.order_by("-recorded_at", "-pk")


def _listed_tenants(chosen: str) -> list[Tenant]:
    listed = list(Tenant.objects.order_by("name", "pk")[:MAX_TENANTS])
    missing = chosen and chosen not in {each.pk for each in listed}
    return [*Tenant.objects.filter(pk=chosen), *listed] if missing else listed


def receipt_row(receipt: BankReceipt) -> ReceiptRow:
    """Return a receipt with what it left."""
    return ReceiptRow(receipt, receipt.minor - sum(part.minor for part in receipt.parts.all()))


def _record(request: OperatorRequest) -> str:
    typed = request.POST
    tenant = find_form_tenant(request)
    try:
        minor = parse_amount(typed.get("amount", ""), tenant.currency)
        received_on = date.fromisoformat(typed.get("received_on", "").strip())
    except InvalidAmount as error:
        raise InvalidValue("amount", str(error), fix=_("Enter an amount such as 100.00.")) from error
    except ValueError as error:
        raise InvalidValue("received_on", _("The date is not valid."), fix=_("Select a day.")) from error
    pays, invoices = parse_use(typed.get("pays", ""), typed.get("invoices", ""), tenant)
    receipt = record_receipt(
        tenant,
        ReceiptTerms(
            minor=minor,
            currency=tenant.currency,
            received_on=received_on,
            reference=typed.get("reference", ""),
            payer=typed.get("payer", ""),
            pays=pays,
            invoices=invoices,
        ),
        idem=f"form {typed.get('key', '')[:60]}",
        actor=request.actor,
        now=request.now,
    )
    return describe_recorded(receipt, tenant)


def describe_recorded(receipt: BankReceipt, tenant: Tenant) -> str:
    """Return what a new receipt did, for people."""
    with tenant_scope(tenant.pk):
        parts = list(receipt.parts.select_related("invoice__period"))
    paid = ", ".join(f"{part.invoice}: {Money(part.minor, receipt.currency)}" for part in parts)
    left = receipt.minor - sum(part.minor for part in parts)
    text = _("{amount} of {tenant_name} recorded.").format(
        amount=Money(receipt.minor, receipt.currency), tenant_name=tenant.name
    )
    text += f" {paid}." if paid else ""
    if left:
        text += " " + _("{left} is on the balance.").format(left=Money(left, receipt.currency))
    return text


def parse_use(pays: str, invoices: str, tenant: Tenant) -> tuple[ReceiptUse, tuple[str, ...]]:
    """Return what a transfer pays, from a form.

    Numbers or ids of invoices, separated by commas or blanks.
    """
    if pays not in set(ReceiptUse):
        raise InvalidValue("pays", _("Nothing was selected."), fix=_("Select what the transfer pays."))
    use = ReceiptUse(pays)
    if use is not ReceiptUse.INVOICES:
        return use, ()
    wanted = invoices.replace(",", " ").split()[:MAX_OPEN_INVOICES]
    with tenant_scope(tenant.pk):
        known = {
            name: invoice.pk
            for invoice in Invoice.objects.filter(tenant=tenant, number__isnull=False).select_related("period")
            for name in (str(invoice), invoice.pk)
        }
    for name in wanted:
        if name not in known:
            raise InvalidValue(
                "invoices",
                _("{name} is no invoice of {tenant_name}.").format(name=name[:60], tenant_name=tenant.name),
                fix=_("Enter invoice numbers such as 2026-10-0001."),
            )
    return use, tuple(known[name] for name in wanted)
