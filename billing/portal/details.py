"""Billing details: who a tenant is on its next invoices, and how that taxes it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from billing.domain import tax
from billing.domain.countries import NAMES
from billing.domain.parties import Party
from billing.portal import calls
from billing.portal.invoices import may_settle
from billing.portal.pages import PageRequest, page
from billing.services.tax import details, standings
from tenants.services.permissions import require
from tenants.services.refusals import Invalid, Stale

FIELDS = ("name", "street", "extra", "postcode", "city", "country", "vat_id", "email")
LONGEST = 254
LETTERS = ({"value": "yes", "label": "Send them"}, {"value": "no", "label": "Send none"})
COUNTRIES = sorted(NAMES.items(), key=lambda entry: entry[1].replace("Å", "A"))


@require_http_methods(["GET", "POST"])
@page("billing.read")
def billing_details(request: PageRequest) -> HttpResponse:
    """Show who the tenant is on paper; a POST says it anew."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    told = standings.customer(request.tenant).as_dict()
    version, wrong = details.version(request.tenant), dict[str, str]()
    if request.method == "POST":
        require(request.roles, "billing.write", ())
        told = {name: request.POST.get(name, "")[:LONGEST] for name in FIELDS}
        try:
            return _keep(request, Party(**told), seen=request.POST.get("seen", ""))
        except Invalid as odd:
            wrong = {str(odd.field): f"{odd.detail} {odd.fix.text}"}
        except Stale as stale:
            messages.warning(request, f"{stale.detail} {stale.fix.text}")
    shown: dict[str, Any] = {
        "told": told,
        "wrong": wrong,
        "seen": version,
        "known": version > 0,
        "letters": request.POST.get("letters") or ("yes" if details.letters(request.tenant) else "no"),
        "letter_choices": LETTERS,
        "countries": COUNTRIES,
        "may_tell": may_settle(request),
        "tenant": request.tenant,
        "now": request.now,
        "call": calls.get("/billing-details"),
        "call_put": calls.put("/billing-details", told),
        **taxed(request),
    }
    return render(request, "billing/details.html", shown, status=400 if wrong else 200)


def taxed(request: PageRequest) -> dict[str, Any]:
    """Say by whom and how the tenant is taxed, as things stand."""
    standing, supplier = standings.standing(request.tenant), standings.supplier()
    rate = standings.rate_on(standing, request.now)
    per_cent = f"{tax.per_cent(rate)} %" if rate is not None else ""
    country = NAMES.get(standing.jurisdiction, "")
    words = tax.IN_WORDS[standing.treatment]
    if standing.treatment in tax.TAXED:
        words = (
            f"VAT of {country} is added to what you use." if per_cent else f"VAT of {country} will be added."
        )
    return {"supplier": supplier, "words": words, "per_cent": per_cent, "standing": standing}


def _keep(request: PageRequest, told: Party, *, seen: str) -> HttpResponse:
    if seen != str(details.version(request.tenant)):
        raise Stale(
            "Somebody has changed the billing details since you opened this page.",
            fix="Look at what stands here now, and save once more.",
        )
    wants = request.POST.get("letters")
    letters = wants == "yes" if wants in ("yes", "no") else None
    details.tell(request.tenant, told=told, actor=request.actor, now=request.now, letters=letters)
    messages.success(
        request, "Your next invoices are made out to this; those that are final stay as they are."
    )
    return redirect("billing-details")
