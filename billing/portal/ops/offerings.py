"""What is sold and for how much: derived, named, published, priced from a date on, retired."""

from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing.models import PriceVersion
from billing.models.prices import PriceModel
from billing.portal.wishes import YEARS
from billing.services import gaps, prices, repricing, tiers
from billing.services.repricing import Preview
from billing.services.storage.sale import sold_since
from broker.models import Cluster, Lease, Offering, OfferingState
from broker.portal.operations import OpsRequest, Step, ask, page
from broker.services import catalogue, offerings
from broker.services.leases import openings
from broker.services.volumes import histories
from tenants.portal.acts import MOST, ops_call
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_staff

SHOWN = 12  # tenants of a preview; the call returns them all
ASKS = require_http_methods(["GET", "HEAD", "POST"])


@require_safe
@page("offerings")
def table(request: OpsRequest) -> HttpResponse:
    """Show everything the inventory could sell, with its state, its price now and the next one."""
    state = request.GET.get("state", "")
    state = state if state in OfferingState.values else ""
    rows = list(
        Offering.objects.order_by("gpu_model_id", "region", "-memory_gb", "-milli_units", "price_class", "id")
    )
    counts = {value: sum(row.state == value for row in rows) for value in OfferingState.values}
    found = [row for row in rows if not state or row.state == state]
    upcoming = prices.upcoming(request.now, currency=settings.CURRENCY)
    live = _live()
    known = prices.at(request.now, currency=settings.CURRENCY)
    free = openings.count((row for row in found if row.state == OfferingState.PUBLISHED), now=request.now)
    told = {
        "rows": [
            {
                "offering": row,
                "price_class": in_words(row),
                "price": known.get(row.pk),
                "next": upcoming.get(row.pk),
                "free": free.get(row.pk),
                "live": live.get(row.pk, 0),
            }
            for row in found
        ],
        "currency": settings.CURRENCY,
        "gaps": [row for row in rows if row.state == OfferingState.PUBLISHED and row.pk not in known],
        "unpriced": gaps.unpriced(now=request.now),
        "stored": (stored := sold_since() is not None),
        "free_storage": not stored and any(row.is_storage for row in rows),
        "drafts": counts[OfferingState.DRAFT],
        "count": counts[OfferingState.PUBLISHED],
        "filters": [
            {"url": reverse("ops-offerings"), "label": "All", "count": len(rows), "current": not state},
            *(
                {
                    "url": f"{reverse('ops-offerings')}?state={value}",
                    "label": label,
                    "count": counts[value],
                    "current": value == state,
                }
                for value, label in OfferingState.choices
            ),
        ],
        "calls": [
            ops_call("Offerings with their prices", "ops/offerings", state=state, limit=MOST),
            ops_call("Used without a price", "ops/price-gaps"),
        ],
    }
    return render(request, "ops/offerings.html", told)


def _live() -> dict[str, int]:
    """Count the live leases of each offering."""
    counts: defaultdict[str, int] = defaultdict(int)
    for pk in Lease.objects.live().values_list("offering_id", flat=True):
        counts[pk] += 1
    return counts


def in_words(offering: Offering) -> str:
    return offering.price_class.replace("_", "-")


@require_POST
@page("offerings.derive")
def derive(request: OpsRequest) -> HttpResponse:
    """Draft an offering for every shape of the inventory that has none."""
    new = catalogue.derive_offerings(now=request.now, any_share=True)
    for region in sorted(set(Cluster.objects.values_list("region", flat=True))):
        histories.storage_in(region, now=request.now)
    said = f"{new} new drafts; name, price and publish them." if new else "Every shape in the racks has one."
    messages.success(request, said)
    return redirect("ops-offerings")


def offering_or_missing(pk: str) -> Offering:
    found = Offering.objects.filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no offering {pk!r}.", fix="Go to Offerings to see what there is.")
    return found


@ASKS
@page("offering")
def edit(request: OpsRequest, pk: str) -> HttpResponse:
    """Show one offering with its prices; `?try=` shows last month at another one; a POST renames it or sets a price."""
    found = offering_or_missing(pk)
    refusal: Refused | None = None
    looked: Preview | None = None
    if request.method == "POST":
        try:
            messages.success(request, _change(request, found))
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            return redirect("ops-offering", pk=pk)
    elif "try" in request.GET:
        try:
            looked = _tried(request, found)
        except Refused as said:
            refusal = said
            because(request, said.detail)
    with as_staff():
        told = _told(request, found, refusal) | looked_at(looked)
        return render(request, "ops/offering.html", told, status=refusal.status if refusal else 200)


def _told(request: OpsRequest, found: Offering, refusal: Refused | None) -> dict[str, Any]:
    versions = (
        PriceVersion.objects.listed().filter(offering=found, currency=settings.CURRENCY).order_by("-valid")
    )
    return {
        "offering": found,
        "price_class": in_words(found),
        "versions": [
            {
                "version": row,
                "from": row.valid.lower,
                "until": row.valid.upper,
                "when": when_of(row, request.now),
                "tiers": tiers.told(row),
            }
            for row in versions
        ],
        "price": prices.at(request.now, currency=settings.CURRENCY, offerings=[found.pk]).get(found.pk),
        "own": PriceVersion.objects.filter(
            offering=found, tenant_id__isnull=False, valid__contains=request.now
        ).count(),
        "currency": settings.CURRENCY,
        "live": Lease.objects.live().filter(offering=found).count(),
        "refusal": refusal,
        "wrong": getattr(refusal, "field", "") if request.method == "POST" else "try",
        "typed": request.POST,
        "tried": request.GET.get("try", ""),
        "tried_with": request.GET,
        "models": PriceModel.choices,
        "new_price": request.POST.get("price", request.GET.get("try", "")),
        "label": request.POST.get("label", found.label),
        "calls": [
            ops_call(
                "Its prices", "ops/price-versions", offering=found.pk, currency=settings.CURRENCY, limit=MOST
            ),
            ops_call("This offering", f"ops/offerings/{found.pk}"),
            ops_call(
                "Last month at another price",
                f"ops/offerings/{found.pk}/preview",
                per_hour=request.GET.get("try", ""),
                model=request.GET.get("model", ""),
                tiers=";".join(request.GET.get("tiers", "").splitlines()),
            ),
        ],
    }


def _tried(request: OpsRequest, found: Offering) -> Preview:
    nano = prices.nano_of(request.GET["try"])
    asked = _tiers(request.GET, nano)
    return repricing.preview(
        found, currency=settings.CURRENCY, nano_per_hour=nano, now=request.now, tiers=asked
    )


def _tiers(typed: Any, nano: int) -> dict[str, Any]:
    """Read by what model a price asks, as it was typed; without a word about it by the hour."""
    return tiers.read(typed.get("model", "") or PriceModel.FLAT, nano, tiers.lines(typed.get("tiers", "")))


def looked_at(looked: Preview | None) -> dict[str, Any]:
    """Return a preview as the page shows it: the tenants it changes most for."""
    if looked is None:
        return {}
    return {
        "preview": looked,
        "month": f"{looked.month.start:%B %Y}",
        "more": looked.would_be_minor - looked.was_minor,
        "effects": [
            {
                "effect": effect,
                "was": looked.minor(effect.was),
                "would_be": looked.minor(effect.would_be),
                "more": looked.minor(effect.would_be - effect.was),
            }
            for effect in looked.effects[:SHOWN]
        ],
        "others": max(len(looked.effects) - SHOWN, 0),
    }


def when_of(row: PriceVersion, now: datetime) -> str:
    if row.valid.lower > now:
        return "scheduled"
    return "now" if row.valid.upper is None or row.valid.upper > now else "past"


def _change(request: OpsRequest, found: Offering) -> str:
    if "label" in request.POST:
        offerings.rename(found, label=request.POST["label"], actor=request.actor, now=request.now)
        return f"It is called {found.label} now."
    nano, since = (
        prices.nano_of(request.POST.get("price", "")),
        moment_of(request.POST.get("from", ""), request.now),
    )
    prices.publish(
        offering=found,
        currency=settings.CURRENCY,
        nano_per_hour=nano,
        since=since,
        tiers=_tiers(request.POST, nano),
        actor=request.actor,
        now=request.now,
    )
    return f"The new price holds from {since:%d %b %Y %H:%M} UTC."


def moment_of(text: str, now: datetime, *, field: str = "from") -> datetime:
    """Read when a price begins; nothing means at once."""
    if not text.strip():
        return now
    with suppress(ValueError, OverflowError):
        when = datetime.fromisoformat(text.strip())
        if when.year in YEARS:  # others may be beyond what a clock of another zone can show
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    raise Invalid(
        field,
        f"A moment looks like 2026-12-01T00:00, in UTC unless it names its own offset,"
        f" from {YEARS.start} to {YEARS.stop - 1}.",
        fix="Choose one, or leave it empty.",
    )


def move(request: OpsRequest, pk: str, state: OfferingState, *lines: str) -> HttpResponse:
    """Ask about another state of an offering, then set it."""
    found = offering_or_missing(pk)
    with as_staff():
        live = Lease.objects.live().filter(offering=found).count()
    verb = "Publish" if state is OfferingState.PUBLISHED else "Retire"

    def act(_why: str) -> str:
        if state is OfferingState.PUBLISHED:  # what has no price is never sold for nothing
            prices.of(found, currency=settings.CURRENCY, moment=request.now)
        offerings.move(found, state, actor=request.actor, now=request.now)
        return f"{found.label} is {state.label.lower()}."

    step = Step(
        title=f"{verb} {found.label}, {in_words(found)}, {found.region}?",
        verb=f"{verb} {found.label}",
        back=reverse("ops-offering", args=[pk]),
        lines=(*lines, f"{live} lease{' runs' if live == 1 else 's run'} on it now."),
        danger=state is OfferingState.RETIRED,
        needs_reason=False,
    )
    return ask(request, step, act)


@ASKS
@page("offering.publish")
def publish(request: OpsRequest, pk: str) -> HttpResponse:
    """Put an offering on sale; refused while it has no price."""
    return move(request, pk, OfferingState.PUBLISHED, "Tenants see it in the catalogue at once.")


@ASKS
@page("offering.retire")
def retire(request: OpsRequest, pk: str) -> HttpResponse:
    """Take an offering off sale."""
    told = "It takes no new leases; those that run go on at its price until their own end."
    return move(request, pk, OfferingState.RETIRED, told)
