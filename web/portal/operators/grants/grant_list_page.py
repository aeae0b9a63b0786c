"""Grants of all tenants, for operators."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.models import Grant
from billing.services.funds.grants import grant_balances
from tenants.models import Project, Tenant
from web.portal.actions import API_PAGE_SIZE, list_page, operator_api_call
from web.portal.operators.page_context import OperatorRequest, operator_page
from web.portal.wallet.wallet_page import GrantRow, grant_scope

MAX_TENANTS = 500  # tenants in a list to choose from


@operator_page("grants")
def list_grants(request: OperatorRequest) -> HttpResponse:
    """List grants of all tenants, latest first."""
    rows = Grant.objects.select_related("tenant", "lapse", "offering").order_by("-given_at", "-pk")
    if tenant := request.GET.get("tenant", ""):
        rows = rows.filter(tenant=tenant)
    shown = list_page(request, rows, count=rows.count())
    wanted = {grant.project_id for grant in shown.rows if grant.project_id}
    names = dict(Project.objects.filter(pk__in=wanted).values_list("pk", "name"))
    context = {
        "listing": shown,
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
