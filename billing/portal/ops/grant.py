"""Giving credit to a tenant, on the operators' pages."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from billing.domain.money import Money
from billing.portal.ops.grant_form import Form, name_of, terms_of
from billing.services.grants import giving
from broker.models import Offering, OfferingState
from broker.portal.operations import ASKS, OpsRequest, page
from ports import ids
from tenants.models import Project, Tenant
from tenants.portal.acts import MOST, ops_call
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_staff


@ASKS
@page("grant")
def give(request: OpsRequest, pk: str) -> HttpResponse:
    """Ask how much credit a tenant is to have, for what and until when; a POST gives it."""
    with as_staff():
        tenant = Tenant.objects.filter(pk=pk).first()
        if tenant is None:
            raise Missing(f"There is no tenant {pk!r}.", fix="Look for it in the list of tenants.")
        projects = list(Project.objects.filter(tenant=tenant).order_by("path__len", "name"))
    offerings = list(Offering.objects.filter(state=OfferingState.PUBLISHED).order_by("label", "pk"))
    form, refusal = Form(name=ids.new("gra")), None
    if request.method == "POST":
        form = Form.of(request.POST)
        try:
            terms = terms_of(form, tenant, projects, offerings)
            grant = giving.give(tenant, terms, idem=name_of(form), actor=request.actor, now=request.now)
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            messages.success(
                request, f"{tenant.name} has {Money(grant.minor, grant.currency)} of credit more."
            )
            return redirect(f"{reverse('ops-grants')}?tenant={tenant.pk}")
    with as_staff():
        told = {
            "tenant": tenant,
            "projects": projects,
            "offerings": offerings,
            "form": form,
            "refusal": refusal,
            "field": refusal.field if isinstance(refusal, Invalid) else "",
            "said": f"{refusal.detail} {refusal.fix.text}" if refusal else "",
            "calls": [ops_call("Its credit", "ops/grants", tenant=tenant.pk, sort="-id", limit=MOST)],
        }
        return render(request, "ops/grant.html", told, status=refusal.status if refusal else 200)
