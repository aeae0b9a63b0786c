"""The books: what is on the accounts of every kind, whether both sides agree, and what was posted last."""

import re
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from billing.models import Invoice, LedgerTransfer
from billing.services.ledger import books
from broker.portal.operations import OpsRequest, page
from tenants.models import Tenant
from tenants.portal.acts import MOST, ROWS, ops_call

ID = re.compile(r"[a-z]{3}_[0-9a-z]{1,36}")


@require_safe
@page("ledger")
def ledger(request: OpsRequest) -> HttpResponse:
    """Show the trial balance, and the latest transfers: of all, of a tenant, or of one invoice."""
    ref, tenant = (_named(request, name) for name in ("invoice", "tenant"))
    rows = LedgerTransfer.objects.about(ref) if ref else LedgerTransfer.objects.all()
    rows = rows.filter(tenant_id=tenant) if tenant else rows
    before = request.GET.get("before", "")
    older = rows.filter(pk__lt=int(before)) if re.fullmatch(r"[0-9]{1,18}", before, re.ASCII) else rows
    found = list(older.select_related("debit_account", "credit_account").order_by("-pk")[: ROWS + 1])
    shown, totals = found[:ROWS], books.trial_balance()
    only = {"invoice": ref, "tenant": tenant}
    told = {
        "totals": totals,
        "wrong": [each for each in totals if not each.balanced],
        "transfers": _told(shown),
        "about": _about(ref, tenant),
        "earlier": f"?{_query(**only, before=shown[-1].pk)}" if len(found) > ROWS else "",
        "latest": f"?{_query(**only)}" if older is not rows else "",
        "calls": [
            ops_call(
                "Transfers, the latest first",
                "ops/ledger-transfers",
                sort="-id",
                **_for_api(only),
                limit=MOST,
            ),
            ops_call("Trial balance", "ops/trial-balance"),
        ],
    }
    return render(request, "ops/ledger.html", told)


def _named(request: OpsRequest, name: str) -> str:
    """Return the id that the address asks for; anything else asks for nothing."""
    asked = request.GET.get(name, "")
    return asked if ID.fullmatch(asked) else ""


def _query(**asked: object) -> str:
    return urlencode({name: value for name, value in asked.items() if value})


def _for_api(only: dict[str, str]) -> dict[str, str]:
    return {"ref": only["invoice"], "tenant": only["tenant"]}


def _about(ref: str, tenant: str) -> dict[str, str] | None:
    """Say what the transfers are limited to, and where that leads back from."""
    if not ref and not tenant:
        return None
    invoice = Invoice.objects.select_related("tenant", "period").filter(pk=ref).first() if ref else None
    whose = invoice.tenant if invoice else Tenant.objects.filter(pk=tenant).first()
    words = (
        f"invoice {invoice}, {invoice.status.replace('_', ' ')}, of "
        if invoice
        else f"{ref} of "
        if ref
        else ""
    )
    return {
        "words": f"{words}{whose.name if whose else tenant or 'nobody'}",
        "all": reverse("ops-ledger"),
        "invoice": reverse("ops-invoice", args=[invoice.pk]) if invoice else "",
    }


def _told(transfers: list[LedgerTransfer]) -> list[dict[str, Any]]:
    """Give each transfer the names of its tenant and invoice; two queries."""
    tenants = dict(
        Tenant.objects.filter(pk__in={each.tenant_id for each in transfers}).values_list("pk", "name")
    )
    invoices = Invoice.objects.in_bulk({each.ref for each in transfers})
    here = reverse("ops-ledger")
    return [
        {
            "transfer": each,
            "tenant": tenants.get(each.tenant_id, each.tenant_id),
            "invoice": str(invoices[each.ref]) if each.ref in invoices else each.ref,
            "only_invoice": f"{here}?{_query(invoice=each.ref)}",
            "only_tenant": f"{here}?{_query(tenant=each.tenant_id)}",
        }
        for each in transfers
    ]
