"""Corrections of what was charged: the list with what can be proposed, and one with its diff and who approved it."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from billing.models import Correction, CorrectionShare, PriceVersion
from billing.models.corrections import CorrectionStatus
from billing.services import prices
from billing.services.corrections import approving, proposing
from broker.models import Lease, Offering
from broker.portal.operations import ASKS, OpsRequest, page
from tenants.portal.acts import MOST, ops_call, part
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_staff

FIELDS = ("what", "lease", "version", "price", "since", "until", "reason")
DIGITS = 18


@ASKS
@page("corrections")
def table(request: OpsRequest) -> HttpResponse:
    """Show every correction, the latest first; a POST proposes one and leads to its diff."""
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            made = _propose(request)
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            return redirect("ops-correction", pk=made.pk)
    with as_staff():
        rows = Correction.objects.select_related("price_version__offering").order_by("-proposed_at", "-pk")
        told = {
            "part": part(request, rows, count=rows.count()),
            "refusal": refusal,
            "typed": {name: request.POST.get(name, request.GET.get(name, "")) for name in FIELDS},
            "calls": [ops_call("Corrections", "ops/corrections", limit=MOST)],
        }
        return render(request, "ops/corrections.html", told, status=refusal.status if refusal else 200)


@ASKS
@page("correction")
def correction(request: OpsRequest, pk: str) -> HttpResponse:
    """Show a correction; a POST approves what the page showed, or withdraws it."""
    found = _of(pk)
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            messages.success(request, _decide(request, found))
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            return redirect("ops-correction", pk=pk)
    with as_staff():
        told = _told(request, _of(pk), refusal)
        return render(request, "ops/correction.html", told, status=refusal.status if refusal else 200)


def _of(pk: str) -> Correction:
    with as_staff():
        found = Correction.objects.select_related("price_version__offering").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no correction {pk!r}.", fix="Look for it in the list of corrections.")
    return found


def _propose(request: OpsRequest) -> Correction:
    asked: dict[str, Any] = {
        "since": _moment(request, "since"),
        "until": _moment(request, "until"),
        "why": request.POST.get("reason", ""),
        "actor": request.actor,
        "now": request.now,
    }
    if request.POST.get("what") == "price":
        text = request.POST.get("version", "").strip()
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else 0
        with as_staff():
            version = PriceVersion.objects.filter(pk=number).first()
        if version is None:
            raise Invalid(
                "version", f"There is no price version {text!r}.", fix="Take it from the offering's page."
            )
        nano = prices.nano_of(request.POST.get("price", ""))
        return proposing.of_price(version, nano_per_hour=nano, **asked)
    pk = request.POST.get("lease", "").strip()
    with as_staff():
        lease = Lease.objects.filter(pk=pk).first()
    if lease is None:
        raise Invalid("lease", f"There is no lease {pk!r}.", fix="Type its id, such as lse_….")
    return proposing.of_lease(lease, charge=request.POST.get("what") == "charge", **asked)


def _moment(request: OpsRequest, name: str) -> datetime:
    try:
        found = datetime.fromisoformat(request.POST.get(name, "").strip())
    except ValueError:
        raise Invalid(
            name, f"The {name} is no moment.", fix="Type it in UTC, such as 2026-11-21 09:00:00."
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _decide(request: OpsRequest, found: Correction) -> str:
    if request.POST.get("verb") == "withdraw":
        proposing.withdraw(found, actor=request.actor, now=request.now)
        return "Withdrawn; nothing was booked."
    done = approving.approve(found, seen=request.POST.get("seal", ""), actor=request.actor, now=request.now)
    words = {
        CorrectionStatus.PROPOSED: "Approved; one other has to approve it too.",
        CorrectionStatus.APPROVED: "Approved; it is booked tenant by tenant now.",
    }
    return words.get(CorrectionStatus(done.status), "Approved and booked.")


def _told(request: OpsRequest, found: Correction, refusal: Refused | None) -> dict[str, Any]:
    shares = list(
        CorrectionShare.objects.filter(correction=found).select_related("tenant").order_by("tenant__name")
    )
    rows = [(share, change) for share in shares for change in share.diff]
    shown = part(request, rows)
    offerings = {change["offering"] for _, change in shown.rows}
    return {
        "correction": found,
        "shares": shares,
        "part": shown,
        "labels": dict(Offering.objects.filter(pk__in=offerings).values_list("pk", "label")),
        "open": found.status == CorrectionStatus.PROPOSED,
        "own": request.actor.id in (found.author_id, found.approver_id),
        "refusal": refusal,
        "calls": [ops_call("This correction", f"ops/corrections/{found.pk}")],
    }
