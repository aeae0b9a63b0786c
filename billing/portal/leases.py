"""Every lease of the open project: filtered by its address, page by page, or whole as CSV."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.domain.money import decimal_string
from billing.portal import calls, downloads
from billing.portal.addresses import chosen, menu, options, varied
from billing.portal.pages import PageRequest, may, page
from billing.portal.rows import Row, burning, loaded, rows
from broker.domain.states import LeaseState, PriceClass
from broker.models.leases import LeaseQuerySet

LIMIT = 30
MOST_AS_CSV = 20_000
S = LeaseState
TABS: dict[str, tuple[str, frozenset[LeaseState]]] = {
    "": ("Live", frozenset(S) - {S.RELEASED}),
    "active": ("Active", frozenset({S.ACTIVE})),
    "waiting": ("Waiting", frozenset({S.REQUESTED, S.QUEUED, S.PROVISIONING})),
    "over": ("Released", frozenset({S.RELEASED})),
    "all": ("All", frozenset(S)),
}
CLASSES = [(PriceClass.ON_DEMAND.value, "on-demand"), (PriceClass.SPOT.value, "spot")]
HEADS = ["id", "name", "project", "offering", "price_class", "quantity", "state", "created_at", "active_at",
         "ended_at", "end_reason", "charged_seconds", "amount", "currency"]  # fmt: skip


@require_GET
@page("leases.read")
def leases(request: PageRequest) -> HttpResponse:
    tab = chosen(request, "state", TABS)
    found = filtered(request, tab)
    if request.GET.get("format") == "csv":
        return downloads.table("leases", HEADS, lines(request, found))
    before = request.GET.get("cursor", "")
    beneath = found.filter(pk__lt=before) if before else found
    listed = list(loaded(beneath.order_by("-pk"))[: LIMIT + 1])
    more = len(listed) > LIMIT
    shown = rows(listed[:LIMIT], currency=request.tenant.currency, now=request.now)
    choices = tabs(request, tab)
    context: dict[str, Any] = {
        "rows": shown,
        "now": request.now,
        "tabs": choices,
        "none_yet": not choices[-1]["count"],
        "filters": [
            menu(request, "class", "Class", CLASSES),
            menu(request, "by", "Asked for by", [("me", "me")]),
        ],
        "query": request.GET.get("q", ""),
        "burning": burning(shown),
        "currency": request.tenant.currency,
        "older": varied(request) + ("&" if "?" in varied(request) else "?") + f"cursor={listed[LIMIT - 1].pk}"
        if more
        else "",
        "newest": varied(request) if before else "",
        "csv": varied(request, format="csv"),
        "may_write": may(request, "leases.write"),
        "project": request.project,
        "call": call(request, tab),
    }
    return render(request, "billing/leases.html", context)


def call(request: PageRequest, tab: str) -> str:
    """Write the call that gives the same leases, from the newest on."""
    states = TABS[tab][1]
    return calls.listing(
        "/leases",
        request.scope,
        state="" if len(states) == len(S) else ",".join(state.value for state in S if state in states),
        price_class=chosen(request, "class", dict(CLASSES)),
        requested_by=chosen(request, "by", ["me"]),
        q=request.GET.get("q", "").strip()[:120],
        limit=LIMIT,
    )


def filtered(request: PageRequest, tab: str) -> LeaseQuerySet:
    """Return the leases that the address asks for."""
    found = request.scope.leases().filter(state__in=[state.value for state in TABS[tab][1]])
    if chosen(request, "class", dict(CLASSES)):
        found = found.filter(offering__price_class=request.GET["class"])
    if chosen(request, "by", ["me"]):
        found = found.filter(requested_by=request.actor.id)
    if words := request.GET.get("q", "").strip()[:120]:
        found = found.filter(Q(name__icontains=words) | Q(pk=words) | Q(offering__label__icontains=words))
    return found


def tabs(request: PageRequest, tab: str) -> list[dict[str, Any]]:
    """Return the tabs with what each holds; one query."""
    counted = dict(request.scope.leases().values_list("state").annotate(Count("pk")).order_by())
    request.scope.known["live"] = {state: n for state, n in counted.items() if state != S.RELEASED.value}
    choices = options(request, "state", [(value, label) for value, (label, _) in TABS.items()], tab)
    return [
        {**option, "count": sum(counted.get(state.value, 0) for state in states)}
        for option, (_, states) in zip(choices, TABS.values(), strict=True)
    ]


def lines(request: PageRequest, found: LeaseQuerySet) -> Iterable[list[object]]:
    """Yield the cells of the CSV."""
    listed = rows(
        loaded(found.order_by("-pk"))[:MOST_AS_CSV], currency=request.tenant.currency, now=request.now
    )
    return [cells(row) for row in listed]


def cells(row: Row) -> list[object]:
    lease = row.lease
    times = [at.isoformat() if at else "" for at in (lease.created_at, lease.active_at, lease.ended_at)]
    return [lease.pk, lease.name, lease.project.name, lease.offering.label, lease.offering.price_class,
            lease.quantity, lease.state, *times, lease.end_reason, row.cost.seconds,
            decimal_string(row.cost.minor, row.currency), row.currency]  # fmt: skip
