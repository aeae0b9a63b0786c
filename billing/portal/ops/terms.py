"""How a tenant pays and stands, as operators set it."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from billing.models import PaymentTerms, TenantStanding
from billing.services.wallets import money
from billing.services.wallets import terms as services
from broker.portal.operations import ASKS, OpsRequest, page
from tenants.models import Tenant
from tenants.portal.acts import ops_call
from tenants.portal.refused import because
from tenants.services.refusals import Missing, Refused
from tenants.services.walls import as_staff


@ASKS
@page("terms")
def terms(request: OpsRequest, pk: str) -> HttpResponse:
    """Show how a tenant pays and stands, and what is in its wallet; a POST sets both for a reason."""
    with as_staff():
        tenant = Tenant.objects.filter(pk=pk).first()
    if tenant is None:
        raise Missing(f"There is no tenant {pk!r}.", fix="Look for it in the list of tenants.")
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            services.set_terms(
                tenant,
                payment=request.POST.get("payment", ""),
                standing=request.POST.get("standing", ""),
                why=request.POST.get("reason", ""),
                actor=request.actor,
                now=request.now,
            )
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            messages.success(request, f"{tenant.name} has these terms now.")
            return redirect(reverse("ops-terms", args=[pk]))
    with as_staff():
        found = services.of(tenant)
        told = {
            "tenant": tenant,
            "terms": found,
            "funds": money.funds(tenant, now=request.now),
            "payments": PaymentTerms.choices,
            "standings": TenantStanding.choices,
            "payment": request.POST.get("payment", found.payment),
            "standing": request.POST.get("standing", found.standing),
            "reason": request.POST.get("reason", ""),
            "refusal": refusal,
            "calls": [ops_call("Terms of all tenants", "ops/terms", tenant=tenant.pk)],
        }
        return render(request, "ops/terms.html", told, status=refusal.status if refusal else 200)
