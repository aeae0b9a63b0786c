"""Grants of all tenants, for operators."""

from typing import Any

from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.models import Grant
from billing.services.funds.grants import grant_balances
from tenants.models import Project, Tenant
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.list_specs import ListSum, OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, operator_page
from web.portal.wallet.wallet_page import GrantRow, grant_scope

MAX_TENANTS = 500  # tenants in a list to choose from


def _grant_cells(each: Grant) -> tuple[object, ...]:
    return (
        *(each.pk, each.tenant_id, each.tenant.name, each.source, each.reason, csv_time(each.given_at)),
        *(csv_time(each.expires_at), each.currency, csv_money(each.minor, each.currency)),
    )


GRANT_LIST = OperatorList(
    name="credits",
    heads="grant tenant tenant_name source reason given_at expires_at currency amount",
    cells=_grant_cells,
    tenant="tenant_id",
    at="given_at",
    search=("reason", "pk"),
    sums=(ListSum(gettext_lazy("Granted"), "minor"),),
)


@operator_page("grants")
def list_grants(request: OperatorRequest) -> Any:
    """List grants of all tenants, latest first."""
    lists = read_lists(request, GRANT_LIST)
    rows = Grant.objects.select_related("tenant", "lapse", "offering").order_by("-given_at", "-pk")
    if wants_csv(request):
        return lists.csv((GRANT_LIST, lambda: rows))
    shown, tenant = lists.read(GRANT_LIST, rows), lists.filter.tenant_id
    wanted = {grant.project_id for grant in shown.rows if grant.project_id}
    names = dict(Project.objects.filter(pk__in=wanted).values_list("pk", "name"))
    context = {
        "listing": shown,
        "filter": lists.filter,
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
