"""Ledger page: the trial balance, and the latest transfers."""

import re
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain.journal import TRANSFER_NAMES, account_name
from billing.models import Invoice, LedgerTransfer
from billing.services.ledger import ledger_balances
from tenants.models import Tenant
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.list_specs import ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, operator_page

ID = re.compile(r"[a-z]{3}_[0-9a-z]{1,36}")


def _transfer_cells(each: LedgerTransfer) -> tuple[object, ...]:
    return (
        *(each.pk, csv_time(each.at), each.kind, each.ref, each.tenant_id),
        *(account_name(each.debit_account.type), account_name(each.credit_account.type)),
        *(each.currency, csv_money(each.minor, each.currency), each.reverses_id or "", each.idem),
    )


TRANSFER_LIST = OperatorList(
    name="ledger-transfers",
    heads="transfer at kind ref tenant debit credit currency amount reverses idem",
    cells=_transfer_cells,
    tenant="tenant_id",
    at="at",
    search=("ref", "kind"),
    sums=(ListSum(gettext_lazy("Transferred"), "minor"),),
)


@operator_page("ledger")
def show_ledger(request: OperatorRequest) -> Any:
    """Show the trial balance and latest transfers, optionally of a tenant, invoice or days."""
    ref, tenant = (_id_parameter(request, name) for name in ("invoice", "tenant"))
    lists = read_lists(request, TRANSFER_LIST)
    transfers = LedgerTransfer.objects.for_ref(ref) if ref else LedgerTransfer.objects.all()
    rows: QuerySet[LedgerTransfer] = transfers.select_related("debit_account", "credit_account").order_by("-pk")
    if wants_csv(request):
        return lists.csv((TRANSFER_LIST, lambda: rows))
    listing = lists.read(TRANSFER_LIST, rows, totals=bool(lists.filter.active or ref))
    totals = ledger_balances.stored_trial_balance()
    context = {
        "listing": listing.with_rows(_transfer_rows(listing.rows)),
        "trial_balance": [(each, [(line, account_name(line.type)) for line in each.lines]) for each in totals],
        "wrong": [each for each in totals if not each.balanced],
        "about": _limit_context(ref, tenant),
        "calls": [
            operator_api_call(
                _("Transfers, newest first"),
                "ops/ledger-transfers",
                sort="-id",
                **_api_parameters(ref, tenant),
                limit=API_PAGE_SIZE,
            ),
            operator_api_call(_("Trial balance"), "ops/trial-balance"),
        ],
    }
    return render(request, "operators/ledger/ledger.html", context)


def _id_parameter(request: OperatorRequest, name: str) -> str:
    """Return the id in the query string, or an empty string if malformed."""
    value = request.GET.get(name, "")
    return value if ID.fullmatch(value) else ""


def _query_string(**parameters: object) -> str:
    return urlencode({name: value for name, value in parameters.items() if value})


def _api_parameters(ref: str, tenant: str) -> dict[str, str]:
    return {"ref": ref, "tenant": tenant}


def _limit_context(ref: str, tenant: str) -> dict[str, str] | None:
    """Describe what the transfers are limited to, with a URL that lifts the limit."""
    if not ref and not tenant:
        return None
    invoice = Invoice.objects.select_related("tenant", "period").filter(pk=ref).first() if ref else None
    whose = invoice.tenant if invoice else Tenant.objects.filter(pk=tenant).first()
    words = (
        _("invoice {invoice}, {replace}, of ").format(invoice=invoice, replace=invoice.status.replace("_", " "))
        if invoice
        else _("{ref} of ").format(ref=ref)
        if ref
        else ""
    )
    return {
        "words": f"{words}{whose.name if whose else tenant or 'nobody'}",
        "all": reverse("ops-ledger"),
        "invoice": reverse("ops-invoice", args=[invoice.pk]) if invoice else "",
    }


def _transfer_rows(transfers: list[LedgerTransfer]) -> list[dict[str, Any]]:
    """Return transfers with the names of their tenants and invoices; two queries."""
    tenants = dict(Tenant.objects.filter(pk__in={each.tenant_id for each in transfers}).values_list("pk", "name"))
    invoices = Invoice.objects.in_bulk({each.ref for each in transfers})
    here = reverse("ops-ledger")
    return [
        {
            "transfer": each,
            "kind": TRANSFER_NAMES.get(each.kind, each.kind.replace("_", " ").capitalize()),
            "debit": account_name(each.debit_account.type),
            "credit": account_name(each.credit_account.type),
            "tenant": tenants.get(each.tenant_id, each.tenant_id),
            "invoice": str(invoices[each.ref]) if each.ref in invoices else each.ref,
            "only_invoice": f"{here}?{_query_string(invoice=each.ref)}",
            "only_tenant": f"{here}?{_query_string(tenant=each.tenant_id)}",
        }
        for each in transfers
    ]
