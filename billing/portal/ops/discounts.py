"""Campaigns, discounts and minimums of all tenants, as operators keep them."""

import re
from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from billing.models import Campaign, Discount, Minimum
from billing.portal.discounts import told
from billing.portal.ops.grants import TENANTS
from billing.services import minimums
from billing.services.discounts import campaigns, giving
from billing.services.discounts.campaigns import Round
from billing.services.discounts.terms import Terms, amount_of, percent_of
from broker.domain.states import PriceClass
from broker.models import Offering, OfferingState
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from tenants.models import Tenant
from tenants.portal.acts import MOST, ops_call, part
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_staff

FORMS = {
    "of_code": "campaign",
    "of_one": "discount",
    "of_least": "minimum",
}  # each keeps what was typed into it
NUMBER = re.compile(r"[0-9]{1,6}", re.ASCII)


@ASKS
@page("discounts")
def table(request: OpsRequest) -> HttpResponse:
    """Show codes, discounts and minimums; a POST adds one of them."""
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            messages.success(request, ADD.get(request.POST.get("what", ""), _nothing)(request))
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            return redirect("ops-discounts")
    with as_staff():
        shown = _shown(request, refusal)
        return render(request, "ops/discounts.html", shown, status=refusal.status if refusal else 200)


def _shown(request: OpsRequest, refusal: Refused | None) -> dict[str, Any]:
    of_tenants = Discount.objects.select_related("tenant", "campaign").order_by("-given_at", "-pk")
    codes = Campaign.objects.order_by("-created_at", "-pk")
    agreed = Minimum.objects.select_related("tenant").order_by("-agreed_at", "-pk")
    rows = part(request, of_tenants, count=of_tenants.count())
    month, what = f"{request.now:%Y-%m}", request.POST.get("what", "")
    return {
        "part": rows,
        "rows": told(rows.rows, month),
        "campaigns": [
            {"row": each, "size": giving.size(each), "over": _over(each, request.now)}
            for each in codes[:MOST]
        ],
        "minimums": list(agreed[:MOST]),
        "tenants": list(Tenant.objects.order_by("name", "pk")[:TENANTS]),
        "offerings": list(Offering.objects.filter(state=OfferingState.PUBLISHED).order_by("label", "pk")),
        "classes": [each.value for each in PriceClass],
        **{form: request.POST if what == mine else {} for form, mine in FORMS.items()},
        "what": what,
        "opened": {mine: what == mine for mine in FORMS.values()},
        "refusal": refusal,
        "now": request.now,
        "calls": [
            ops_call("Codes", "ops/campaigns", sort="-id", limit=MOST),
            ops_call("Discounts of all tenants", "ops/discounts", sort="-id", limit=MOST),
            ops_call("Minimums of all tenants", "ops/minimums", sort="-id", limit=MOST),
        ],
    }


def _over(campaign: Campaign, now: datetime) -> bool:
    used_up = campaign.most is not None and campaign.redeemed >= campaign.most
    return used_up or bool(campaign.until and campaign.until <= now)


def _campaign(request: OpsRequest) -> str:
    typed = request.POST
    about = Round(
        until=moment_of("until", typed.get("until", "")),
        months=_number("months", typed.get("months", "")),
        most=_number("most", typed.get("most", "")),
    )
    terms = _terms(request, typed.get("currency", "").strip().upper())
    made = campaigns.make(typed.get("code", ""), terms, about, actor=request.actor, now=request.now)
    return f"{made.code} can be redeemed: {giving.size(made)} off."


def _discount(request: OpsRequest) -> str:
    tenant = tenant_of(request)
    given = giving.give(
        tenant,
        _terms(request, tenant.currency),
        first_month=request.POST.get("first_month", "").strip(),
        months=_number("months", request.POST.get("months", "")),
        actor=request.actor,
        now=request.now,
    )
    return f"{tenant.name} pays {giving.size(given)} less from {given.first_month} on."


def _minimum(request: OpsRequest) -> str:
    tenant = tenant_of(request)
    agreed = minimums.agree(
        tenant,
        minor=amount_of(request.POST.get("amount", ""), tenant.currency),
        since=moment_of("since", request.POST.get("since", "")) or request.now,
        until=moment_of("until", request.POST.get("until", "")),
        actor=request.actor,
        now=request.now,
    )
    return f"{tenant.name} pays at least so much a month from {agreed.valid.lower:%d %b %Y %H:%M} UTC on."


def _nothing(request: OpsRequest) -> str:
    raise Invalid("what", "The form does not say what to add.", fix="Open the page again.")


ADD = {"campaign": _campaign, "discount": _discount, "minimum": _minimum}


def _terms(request: OpsRequest, currency: str) -> Terms:
    """Read what was typed: either a percentage or an amount."""
    percent, amount = (request.POST.get(name, "").strip() for name in ("percent", "amount"))
    return Terms(
        name=request.POST.get("name", ""),
        percent_bp=percent_of(percent) if percent else None,
        minor=amount_of(amount, currency) if amount else None,
        currency=currency,
        offerings=tuple(filter(None, request.POST.getlist("offerings"))),
        price_classes=tuple(filter(None, request.POST.getlist("price_classes"))),
    )


def tenant_of(request: OpsRequest) -> Tenant:
    """Return the tenant that a form names, or raise Invalid."""
    with as_staff():
        found = Tenant.objects.filter(pk=request.POST.get("tenant", "")).first()
    if found is None:
        raise Invalid("tenant", "There is no such tenant.", fix="Choose one of the list.")
    return found


def _number(field: str, text: str) -> int | None:
    if not text.strip():
        return None
    if not NUMBER.fullmatch(text.strip()):
        raise Invalid(field, "That is no whole number.", fix="Type one, or leave it empty for without end.")
    return int(text)


def moment_of(field: str, text: str) -> datetime | None:
    """Return the moment that was typed, in UTC unless it says otherwise; None of nothing."""
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as odd:
        raise Invalid(field, "A moment looks like 2026-12-01T09:00.", fix="Choose one, or none.") from odd
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


@ASKS
@page("discount")
def end(request: OpsRequest, pk: str) -> HttpResponse:
    """Ask whether a code, a discount or a minimum is to end, and do so."""
    with as_staff():
        name, lines, act = _ending(pk)

    def do(why: str) -> str:
        act(request)
        return f"{name} ends."

    step = Step(title=f"End {name}?", verb="End it", back=reverse("ops-discounts"), lines=lines, danger=True)
    return ask(request, step, do)


def _ending(pk: str) -> tuple[str, tuple[str, ...], Any]:
    """Return what it is called, what ending it means, and what does so."""
    if pk.startswith("cam_"):
        code = campaigns.find(pk)
        words = "Nobody can redeem it any longer; whoever did keeps what it got."
        return code.code, (words,), lambda of: campaigns.end(code, actor=of.actor, now=of.now)
    if pk.startswith("min_"):
        agreed = minimums.find(pk)
        words = "At once: of this month its seconds until now count."
        return (
            f"the minimum of {agreed.tenant.name}",
            (words,),
            lambda of: minimums.end(agreed, at=of.now, actor=of.actor, now=of.now),
        )
    if not pk.startswith("dis_"):
        raise Missing("There is nothing to end here.", fix="Look for it in the list of discounts.")
    given = giving.find(pk)
    words = "It is of this month still, and of none after it."
    return (
        f"{given.name} of {given.tenant.name}",
        (words,),
        lambda of: giving.end(given, actor=of.actor, now=of.now),
    )
