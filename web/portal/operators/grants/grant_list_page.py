"""Grants of all tenants, for operators."""

from typing import Any

from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.domain.money import decimal_string
from billing.models import Grant
from billing.services.funds.grants import grant_balances
from tenants.models import Project, Tenant
from web.portal.actions import API_PAGE_SIZE, list_page, operator_api_call
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
from web.portal.wallet.wallet_page import GrantRow, grant_scope

GRANT_HEADS = (
    "grant", "tenant", "tenant_name", "source", "reason", "given_at", "expires_at", "currency", "amount",
)  # fmt: skip
MAX_TENANTS = 500  # tenants in a list to choose from


@operator_page("grants")
def list_grants(request: OperatorRequest) -> Any:
    """List grants of all tenants, latest first."""
    limits, tenant = list_filter(request), request.GET.get("tenant", "")
    found = limits.apply(Grant.objects.all(), at="given_at")
    rows = found.select_related("tenant", "lapse", "offering").order_by("-given_at", "-pk")
    if wants_csv(request):
        return csv_list("credits", GRANT_HEADS, map(_grant_row, rows.iterator(BATCH_SIZE)))
    shown = list_page(request, rows, count=rows.count())
    wanted = {grant.project_id for grant in shown.rows if grant.project_id}
    names = dict(Project.objects.filter(pk__in=wanted).values_list("pk", "name"))
    context = {
        "listing": shown,
        "filter": limits,
        "totals": [ListTotal(_("Granted"), sum_amounts(found, "minor"))],
        "rows": [
            GrantRow(each, grant_scope(each.grant, names))
            for each in grant_balances.grant_balances(shown.rows, now=request.now)
        ],
        "tenants": list(Tenant.objects.order_by("name", "pk")[:MAX_TENANTS]),
        "chosen": tenant,
        "calls": [
            operator_api_call(_("Credit of all tenants"), "ops/grants", tenant=tenant, sort="-id", limit=API_PAGE_SIZE)
        ],
    }
    return render(request, "operators/grants/grants.html", context)


def _grant_row(each: Grant) -> tuple[object, ...]:
    return (
        *(each.pk, each.tenant_id, each.tenant.name, each.source, each.reason, csv_time(each.given_at)),
        *(csv_time(each.expires_at), each.currency, decimal_string(each.minor, each.currency)),
    )
