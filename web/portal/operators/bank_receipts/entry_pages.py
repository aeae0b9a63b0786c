"""Entries of imported bank statements: what they propose, and what operators decide."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from billing.domain.bank.matching import MatchBasis
from billing.models import BankEntry, BankStatement
from billing.services.payments.bank_statements import entry_decisions, entry_matching, statement_import
from billing.services.payments.bank_statements.entry_matching import ProposedEntry
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.bank_receipts.entry_lists import ENTRY_LIST, STATEMENT_LIST
from web.portal.operators.bank_receipts.receipt_page import find_receipt
from web.portal.operators.bank_receipts.receipt_pages import describe_recorded, parse_use
from web.portal.operators.discounts.discount_pages import find_form_tenant
from web.portal.operators.grants.grant_list_page import MAX_TENANTS
from web.portal.operators.list_filters import ListFilter
from web.portal.operators.operator_lists import FilteredList, read_lists, wants_csv
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, find_row, form_page, operator_page

BASIS_TEXTS = {
    MatchBasis.REFERENCE: gettext_lazy("names the invoice and pays what is due"),
    MatchBasis.REFERENCE_ONLY: gettext_lazy("names the invoice, with another amount"),
    MatchBasis.ACCOUNT: gettext_lazy("the account paid for this tenant before"),
    MatchBasis.AMOUNT_AND_NAME: gettext_lazy("amount and name"),
    MatchBasis.AMOUNT: gettext_lazy("only the amount"),
    MatchBasis.NAME: gettext_lazy("only the name"),
}
MAX_STATEMENTS = 5


@dataclass(frozen=True, slots=True)
class BankEntryRow:
    """An entry and its proposal, in words."""

    entry: BankEntry
    proposed: ProposedEntry
    tenant: Tenant | None

    @property
    def basis(self) -> str:
        return str(BASIS_TEXTS[self.proposed.match.basis]) if self.proposed.match else ""

    @property
    def invoices(self) -> str:
        return ", ".join(invoice.number for invoice in self.proposed.match.invoices) if self.proposed.match else ""


@operator_page("bank-entries", methods=SAFE_OR_POST)
def list_entries(request: OperatorRequest) -> Any:
    """List entries of bank statements; a POST imports a file, or books all exact matches."""
    if wants_csv(request):
        lists = read_lists(request, ENTRY_LIST, STATEMENT_LIST)
        return lists.csv((ENTRY_LIST, _entries), (STATEMENT_LIST, _statements))
    return form_page(
        request,
        "operators/bank_receipts/entries.html",
        lambda _: build_entry_list(request),
        lambda: _book_exact(request) if request.POST.get("verb") == "book" else _import(request),
        back=reverse("ops-bank-entries"),
    )


@dataclass(frozen=True, slots=True)
class BankEntryListPage:
    """Entries in one state, with the form that imports a statement."""

    listing: FilteredList
    filter: ListFilter
    statements: FilteredList

    @property
    def exact(self) -> int:
        return sum(bool(row.proposed.match and row.proposed.match.exact) for row in self.listing.rows)

    @property
    def calls(self) -> list[dict[str, str]]:
        return [
            operator_api_call(
                _("Entries of bank statements"), "ops/bank-entries", status=self.filter.state, limit=API_PAGE_SIZE
            ),
            operator_api_call(_("Imported statements"), "ops/bank-statements", limit=API_PAGE_SIZE),
        ]


def build_entry_list(request: OperatorRequest) -> BankEntryListPage:
    """Read one page of the entries in the chosen state, with their proposals."""
    lists = read_lists(request, ENTRY_LIST, STATEMENT_LIST)
    listing = lists.read(ENTRY_LIST, _entries())
    return BankEntryListPage(
        listing=listing.with_rows(entry_rows(listing.rows)),
        filter=lists.count_states(ENTRY_LIST, _entries()),
        statements=lists.read(STATEMENT_LIST, _statements(), most=MAX_STATEMENTS),
    )


def _entries() -> QuerySet[BankEntry]:
    return BankEntry.objects.order_by("-booked_on", "-pk")


def _statements() -> QuerySet[BankStatement]:
    return BankStatement.objects.order_by("-imported_at", "-pk")


def entry_rows(entries: list[BankEntry]) -> list[BankEntryRow]:
    """Return entries with their proposals and the tenants of these."""
    proposed = entry_matching.propose(entries)
    tenants = Tenant.objects.in_bulk([each.match.tenant_id for each in proposed if each.match])
    return [
        BankEntryRow(each.entry, each, tenants.get(each.match.tenant_id) if each.match else None) for each in proposed
    ]


def _import(request: OperatorRequest) -> str:
    uploaded = request.FILES.get("file")
    if uploaded is None or uploaded.size is None:
        raise InvalidValue("file", _("No file was selected."), fix=_("Select the statement that your bank sent."))
    content = uploaded.read(statement_import.MAX_BYTES + 1)
    found = statement_import.import_statement(
        content,
        file_name=uploaded.name or "",
        currency=request.POST.get("currency", "").strip().upper(),
        actor=request.actor,
        now=request.now,
    )
    if found.is_repeated:
        messages.warning(request, _("{name} was imported before; nothing changed.").format(name=found.file_name))
    return ngettext("{n} new entry of {all}.", "{n} new entries of {all}.", found.entries_new).format(
        n=found.entries_new, all=found.entries_found
    )


def _book_exact(request: OperatorRequest) -> str:
    booked = entry_decisions.book_exact_matches(actor=request.actor, now=request.now)
    return ngettext("{n} transfer booked.", "{n} transfers booked.", booked).format(n=booked)


@operator_page("bank-entry", methods=SAFE_OR_POST)
def show_entry(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show an entry with its proposal; a POST books or dismisses it."""
    found = find_row(
        BankEntry.objects.select_related("statement"), pk, _("Entry"), fix=_("Select it from the list of entries.")
    )
    return form_page(
        request,
        "operators/bank_receipts/entry.html",
        lambda _: build_entry_page(request, found),
        lambda: _decide(request, found),
        back=reverse("ops-bank-entries"),
    )


@dataclass(frozen=True, slots=True)
class BankEntryPage:
    """One entry, its proposal, and the form that decides about it."""

    row: BankEntryRow
    tenants: list[Tenant]
    tenant: str  # chosen in the form
    pays: str
    invoices: str

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("This entry"), f"ops/bank-entries/{self.row.entry.pk}")]


def build_entry_page(request: OperatorRequest, found: BankEntry) -> BankEntryPage:
    """Read an entry's proposal, and fill the form from it unless it was sent."""
    (row,) = entry_rows([found])
    match = row.proposed.match
    typed = request.POST
    return BankEntryPage(
        row=row,
        tenants=list(Tenant.objects.order_by("name", "pk")[:MAX_TENANTS]),
        tenant=typed.get("tenant", match.tenant_id if match else ""),
        pays=typed.get("pays", "invoices" if match and match.invoices else "oldest"),
        invoices=typed.get("invoices", row.invoices),
    )


def _decide(request: OperatorRequest, entry: BankEntry) -> str:
    by: dict[str, Any] = {"actor": request.actor, "now": request.now}
    match request.POST.get("verb", ""):
        case "dismiss":
            entry_decisions.dismiss_entry(entry, why=request.POST.get("reason", ""), **by)
            return _("Entry dismissed.")
        case "reopen":
            entry_decisions.reopen_entry(entry, **by)
            return _("Entry reopened.")
        case "return":
            receipt = find_receipt(request.POST.get("receipt", "").strip())
            entry_decisions.book_returned(entry, receipt, **by)
            return _("Transfer {receipt} reversed.").format(receipt=receipt.pk)
    tenant = find_form_tenant(request)
    pays, invoices = parse_use(request.POST.get("pays", ""), request.POST.get("invoices", ""), tenant)
    receipt = entry_decisions.book_entry(entry, tenant=tenant, pays=pays, invoices=invoices, **by)
    return describe_recorded(receipt, tenant)
