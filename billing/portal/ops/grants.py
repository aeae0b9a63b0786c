"""Credit of all tenants as operators see it."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from billing.models import Grant
from billing.portal.wallet import Given, scope
from billing.services.grants import purse
from broker.portal.operations import OpsRequest, page
from tenants.models import Project, Tenant
from tenants.portal.acts import MOST, ops_call, part

TENANTS = 500  # that a list to choose from holds


@require_safe
@page("grants")
def table(request: OpsRequest) -> HttpResponse:
    """Show what tenants have and had of credit, the latest first."""
    rows = Grant.objects.select_related("tenant", "lapse", "offering").order_by("-given_at", "-pk")
    if tenant := request.GET.get("tenant", ""):
        rows = rows.filter(tenant=tenant)
    shown = part(request, rows, count=rows.count())
    wanted = {grant.project_id for grant in shown.rows if grant.project_id}
    names = dict(Project.objects.filter(pk__in=wanted).values_list("pk", "name"))
    told = {
        "part": shown,
        "rows": [
            Given(each, scope(each.grant, names)) for each in purse.standing(shown.rows, now=request.now)
        ],
        "tenants": list(Tenant.objects.order_by("name", "pk")[:TENANTS]),
        "chosen": tenant,
        "calls": [ops_call("Credit of all tenants", "ops/grants", tenant=tenant, sort="-id", limit=MOST)],
    }
    return render(request, "ops/grants.html", told)
