"""Ledger page: the trial balance, and the latest transfers."""

import re
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.journal import TRANSFER_NAMES, account_name
from billing.domain.money import decimal_string
from billing.models import Invoice, LedgerTransfer
from billing.services.ledger import ledger_balances
from tenants.models import Tenant
from web.portal.actions import API_PAGE_SIZE, LIST_PAGE_SIZE, operator_api_call
from web.portal.operators.list_filters import (
    BATCH_SIZE,
    ListTotal,
    csv_list,
    csv_time,
    list_filter,
    sum_amounts,
    wants_csv,
)
from web.portal.operators.page_context import OperatorRequest, operator_page

TRANSFER_HEADS = (
    "transfer", "at", "kind", "ref", "tenant", "debit", "credit", "currency", "amount", "reverses", "idem",
)  # fmt: skip
ID = re.compile(r"[a-z]{3}_[0-9a-z]{1,36}")


@operator_page("ledger")
def show_ledger(request: OperatorRequest) -> Any:
    """Show the trial balance and latest transfers, optionally of a tenant, invoice or days."""
    ref, tenant = (_id_parameter(request, name) for name in ("invoice", "tenant"))
    limits = list_filter(request)
    transfers = LedgerTransfer.objects.for_ref(ref) if ref else LedgerTransfer.objects.all()
    rows: QuerySet[LedgerTransfer] = limits.apply(transfers, at="at")
    if wants_csv(request):
        every = rows.select_related("debit_account", "credit_account").order_by("-pk")
        return csv_list("ledger-transfers", TRANSFER_HEADS, map(_csv_row, every.iterator(BATCH_SIZE)))
    before = request.GET.get("before", "")
    older = rows.filter(pk__lt=int(before)) if re.fullmatch(r"[0-9]{1,18}", before, re.ASCII) else rows
    found = list(older.select_related("debit_account", "credit_account").order_by("-pk")[: LIST_PAGE_SIZE + 1])
    shown, totals = found[:LIST_PAGE_SIZE], ledger_balances.stored_trial_balance()
    only = {"invoice": ref, "tenant": limits.tenant, "since": limits.since or "", "until": limits.until or ""}
    context = {
        "trial_balance": [(each, [(line, account_name(line.type)) for line in each.lines]) for each in totals],
        "filter": limits,
        "totals": [ListTotal(_("Transferred"), sum_amounts(rows, "minor"))] if limits.active or ref else [],
        "wrong": [each for each in totals if not each.balanced],
        "transfers": _transfer_rows(shown),
        "about": _limit_context(ref, tenant),
        "earlier": f"?{_query_string(**only, before=shown[-1].pk)}" if len(found) > LIST_PAGE_SIZE else "",
        "latest": f"?{_query_string(**only)}" if older is not rows else "",
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


def _csv_row(each: LedgerTransfer) -> tuple[object, ...]:
    return (
        *(each.pk, csv_time(each.at), each.kind, each.ref, each.tenant_id),
        *(account_name(each.debit_account.type), account_name(each.credit_account.type)),
        *(each.currency, decimal_string(each.minor, each.currency), each.reverses_id or "", each.idem),
    )


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
