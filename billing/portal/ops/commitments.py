"""Units that tenants pay for, used or not, as operators agree on them and end them."""

import re
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from billing.models import Commitment
from billing.portal.commitments import state
from billing.portal.ops.discounts import moment_of, tenant_of
from billing.portal.ops.grants import TENANTS
from billing.services import commitments, prices
from broker.domain.states import PriceClass
from broker.models import Offering, OfferingState
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from tenants.models import Tenant
from tenants.portal.acts import MOST, ops_call, part
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_staff

UNITS = re.compile(r"[0-9]{1,9}", re.ASCII)


@ASKS
@page("commitments")
def table(request: OpsRequest) -> HttpResponse:
    """Show the commitments of all tenants; a POST agrees on one."""
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            made = _agreed(request)
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            what = f"{made.units} × {made.offering.label}"
            messages.success(
                request, f"{made.tenant.name} pays for {what} from {made.valid.lower:%d %b %Y %H:%M} UTC on."
            )
            return redirect("ops-commitments")
    with as_staff():
        shown = _shown(request, refusal)
        return render(request, "ops/commitments.html", shown, status=refusal.status if refusal else 200)


def _shown(request: OpsRequest, refusal: Refused | None) -> dict[str, Any]:
    agreed = Commitment.objects.select_related("tenant", "offering").order_by("-agreed_at", "-pk")
    rows = part(request, agreed, count=agreed.count())
    sold = Offering.objects.filter(state=OfferingState.PUBLISHED).exclude(price_class=PriceClass.SPOT)
    return {
        "part": rows,
        "rows": [{"row": each, "state": state(each, request.now)} for each in rows.rows],
        "tenants": list(Tenant.objects.order_by("name", "pk")[:TENANTS]),
        "offerings": list(sold.order_by("label", "pk")),
        "typed": request.POST,
        "refusal": refusal,
        "calls": [ops_call("Commitments of all tenants", "ops/commitments", sort="-id", limit=MOST)],
    }


def _agreed(request: OpsRequest) -> Commitment:
    typed = request.POST
    with as_staff():
        offering = Offering.objects.filter(pk=typed.get("offering", "")).first()
    if offering is None:
        raise Invalid("offering", "There is no such offering.", fix="Choose one of the list.")
    if not UNITS.fullmatch(units := typed.get("units", "").strip()):
        raise Invalid("units", "That is no whole number of units.", fix="Type one, such as 8.")
    return commitments.agree(
        tenant_of(request),
        offering,
        units=int(units),
        nano_per_hour=prices.nano_of(typed.get("price", "")),
        since=moment_of("since", typed.get("since", "")) or request.now,
        until=moment_of("until", typed.get("until", "")),
        actor=request.actor,
        now=request.now,
    )


@ASKS
@page("commitment")
def end(request: OpsRequest, pk: str) -> HttpResponse:
    """Ask whether a commitment is to end, and end it."""
    with as_staff():
        found = commitments.find(pk)
    what = f"{found.units} × {found.offering.label} of {found.tenant.name}"

    def do(why: str) -> str:
        commitments.end(found, at=request.now, actor=request.actor, now=request.now)
        return f"{what} ends."

    step = Step(
        title=f"End {what}?",
        verb="End it",
        back=reverse("ops-commitments"),
        lines=("At once: what it covered until now stays covered, and what was not used until now is owed.",),
        danger=True,
        needs_reason=False,
    )
    return ask(request, step, do)
