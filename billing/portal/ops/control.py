"""The control room: what the fleet does and earns now, its map, and what waits for an operator."""

import hashlib
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.conf import settings
from django.http import HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from billing.domain.money import Money
from billing.portal.meters import against
from billing.portal.ops.frame import Frame, age, count, frame
from billing.portal.ops.panel import described
from billing.services import earnings, prices, undecided
from broker.portal import maps
from broker.portal.operations import OpsRequest, page
from broker.services.fleet import cards, hours, needs, summary, troubled
from broker.services.fleet.summary import share
from broker.services.fleet.uses import SCALE, Card, Use, cards_by_use
from tenants.portal.acts import MOST, ops_call

WEEK = timedelta(days=7)
BARS = (
    ("k-sold", "Sold", (Use.SOLD, Use.SPOT)),
    ("res", "Reserved, not charged", (Use.RESERVED,)),
    ("k-free", "Idle", (Use.FREE,)),
    ("frag", "Fragmented", (Use.FRAGMENTED,)),
    ("bad", "Unhealthy", (Use.UNHEALTHY,)),
    ("off", "Maintenance", (Use.MAINTENANCE,)),
)


@require_safe
@page("control_room")
def control_room(request: OpsRequest) -> HttpResponse:
    """Show the whole fleet on one page."""
    fleet = cards.load()
    seen = frame(request, summary.of(fleet))
    troubles = troubled.clusters(now=request.now)
    found = needs.needs(fleet, seen.waiting, now=request.now)
    wanted = [*troubles, *found, *troubled.plans(), *price_gaps(request), *unanswered()]
    chosen = _chosen(fleet, wanted)
    told = {
        "frame": seen,
        "figures": _figures(seen, fleet),
        "money": _revenue(request),
        "hours": _hours(request, fleet),
        "needs": wanted,
        "chosen": chosen and described(chosen, now=request.now),
        "calls": [ops_call("Cards with their slices", "ops/gpus", limit=MOST)],
        **_map(request, fleet, chosen.id if chosen else ""),
    }
    return render(request, "ops/control.html", told)


@require_safe
@page("fleet_map", repeats=True)
def fleet_map(request: OpsRequest) -> HttpResponse:
    """Answer with the map alone, or with 304 while nothing on it has changed."""
    told = _map(request, cards.load(), request.GET.get("card", ""))
    if told["etag"] in request.headers.get("If-None-Match", ""):
        return HttpResponseNotModified(headers={"ETag": told["etag"]})
    response = render(request, "ops/_map.html", told)
    response["ETag"], response["Cache-Control"] = told["etag"], "private, no-cache"
    return response


def _map(request: OpsRequest, fleet: list[Card], current: str) -> dict[str, Any]:
    by = request.GET.get("by", "state")
    by = by if by in maps.VIEWS else "state"
    drawn = maps.draw(fleet, by, current=current)
    told = msgspec.json.encode([drawn.blocks, [(key.kind, key.label, key.tenths) for key in drawn.keys], by])
    options = [
        {"url": f"{reverse('control-room')}?by={name}", "label": label, "current": name == by}
        for name, label in maps.VIEWS.items()
    ]
    etag = f'"{hashlib.sha256(told).hexdigest()[:20]}"'
    return {
        "map": drawn,
        "views": options,
        "etag": etag,
        "address": f"{reverse('ops-map')}?{urlencode({'by': by, 'card': current})}",
        "conditional": json.dumps({"If-None-Match": etag}),
    }


def _chosen(fleet: list[Card], wanted: list[needs.Need]) -> Card | None:
    """Choose the card that is described first: one that needs somebody, else the one shared by most."""
    troubled = {need.subject for need in wanted if need.kind is needs.Kind.CARD}
    return max(fleet, key=lambda card: (card.id in troubled, len(card.slices)), default=None)


def price_gaps(request: OpsRequest) -> list[needs.Need]:
    """Name what is on sale and cannot be bought."""
    gaps = prices.unpriced(currency=settings.CURRENCY, moment=request.now)
    if not gaps:
        return []
    names = ", ".join(offering.label for offering in gaps[:3])
    return [needs.Need(needs.Kind.OFFERINGS, f"{len(gaps)} published without a price", names, urgent=True)]


def unanswered() -> Iterator[needs.Need]:
    """Name what tenants and colleagues wait for an answer to; one query."""
    seen = undecided.look()
    if seen.disputes:
        why = "nobody goes after what is disputed until it is answered"
        what = f"{count(seen.disputes, 'dispute')} to be answered"
        yield needs.Need(needs.Kind.DISPUTES, what, why, since=seen.disputed_since)
    if seen.corrections:
        why = "others than the author approve them; nothing is booked before"
        if seen.second:
            verb = "lacks" if seen.second == 1 else "lack"
            why += f". {seen.second:,} of them {verb} only a second person"
        what = f"{count(seen.corrections, 'correction')} to be approved"
        yield needs.Need(needs.Kind.CORRECTIONS, what, why, since=seen.proposed_since)


def _figures(seen: Frame, fleet: list[Card]) -> dict[str, Any]:
    """Put into words what stands below each figure."""
    lost, waiting = cards_by_use(fleet)[Use.FRAGMENTED], seen.waiting
    oldest = f", oldest {age(waiting.oldest)}" if waiting.oldest is not None else ""
    return {
        "sold": percent(seen.fleet.sold_permille),
        "sold_note": f"{maps.tenths(seen.fleet.sold)} of {seen.fleet.cards:,} cards",
        "earning_note": f"{count(seen.fleet.active, 'lease')} active",
        "queue_note": f"{waiting.waiting:,} waiting{oldest}",
        "queue_kind": "wait" if waiting.overdue else "",
        "lost": percent(share(lost, len(fleet) * SCALE)),
        "lost_note": f"{maps.tenths(lost)} cards",
    }


def percent(permille: int) -> str:
    return f"{permille // 10:,}.{permille % 10}"


def _revenue(request: OpsRequest) -> dict[str, Any]:
    """Compare what today came to with the same hours a week ago."""
    today = hours.midnight(request.now)
    earned, a_week_ago = earnings.over((today, request.now), (today - WEEK, request.now - WEEK))
    exact, before = (each.get(settings.CURRENCY, 0) for each in (earned, a_week_ago))
    rest = [Money.of_exact(e, code) for code, e in sorted(earned.items()) if code != settings.CURRENCY]
    words = f"last {request.now:%A}, same hours"
    return {
        "today": Money.of_exact(exact, settings.CURRENCY),
        "others": rest,
        "note": against(exact, before, words) or f"no revenue {words}",
    }


def _hours(request: OpsRequest, fleet: list[Card]) -> dict[str, Any]:
    spent = hours.since(hours.midnight(request.now), fleet, now=request.now)
    parts = [(kind, word, sum(spent.by_use[use] for use in uses)) for kind, word, uses in BARS]
    return {
        "bar": [(kind, amount) for kind, _, amount in parts],
        "keys": [
            {"kind": kind, "label": word, "value": maps.tenths(amount // 3600)}
            for kind, word, amount in parts
        ],
        "explained": maps.tenths(spent.explained // 3600),
        "total": maps.tenths(spent.total // 3600),
        "whole": spent.explained == spent.total,
    }
