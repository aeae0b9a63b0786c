"""Bank transfers of all tenants, and the form that records one."""

from dataclasses import dataclass
from datetime import date

from django.db.models import Prefetch
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import InvalidAmount, Money, parse_amount
from billing.models import BankReceipt, BankReceiptPart, Invoice
from billing.services.payments.bank_receipts.receipt_records import ReceiptTerms, ReceiptUse, record_receipt
from ports import ids
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from web.portal.actions import API_PAGE_SIZE, ListPage, list_page, operator_api_call
from web.portal.operators.discounts.discount_pages import find_form_tenant
from web.portal.operators.grants.grant_list_page import MAX_TENANTS
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


@operator_page("bank-receipts", methods=SAFE_OR_POST)
def list_receipts(request: OperatorRequest) -> HttpResponse:
    """List bank transfers; a POST records one."""
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

    listing: ListPage
    rows: list[ReceiptRow]
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
    rows = RECEIPTS.order_by("-recorded_at", "-pk")
    chosen = request.GET.get("tenant", "")
    rows = rows.filter(tenant=chosen) if chosen else rows
    shown = list_page(request, rows, count=rows.count())
    return ReceiptListPage(
        listing=shown,
        rows=[receipt_row(each) for each in shown.rows],
        tenants=list(Tenant.objects.order_by("name", "pk")[:MAX_TENANTS]),
        chosen=chosen,
        key=request.POST.get("key") or ids.new("frm"),
        received_on=request.POST.get("received_on", request.now.date().isoformat()),
        pays=request.POST.get("pays", ReceiptUse.OLDEST.value),
    )


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
