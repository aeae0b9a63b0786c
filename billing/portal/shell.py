"""What the frame of every page tells about money: burn now, spent this month, what runs and what waits."""

from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count
from django.urls import reverse

from billing.domain.money import exponent_of, half_up
from billing.domain.money import shown as written
from billing.models import Budget
from billing.portal import meters, standing
from billing.portal.pages import Scope, scope_of
from broker.domain.states import LeaseState
from ports import clock

S = LeaseState


def figures(request: Any) -> dict[str, Any]:
    """Return counts and meters for a visitor inside a tenant; nothing anywhere else.

    At most six queries, and six more for who pays beforehand.
    """
    if getattr(request, "project", None) is None or not hasattr(request, "tenant"):
        return {}
    scope = scope_of(request)
    now = getattr(request, "now", None) or clock.now()
    counts = live(scope)
    purse = standing.wallet(scope, now=now) if request.roles.may("billing.read", ()) else []
    return {
        "counts": {
            "leases": sum(counts.values()),
            "queue": scope.known.get("queued", counts.get(S.QUEUED, 0)),
        },
        "meters": told(scope, now=now, running=counts.get(S.ACTIVE, 0), wallet=purse),
        "search_url": reverse("leases"),
        "search_hint": "Search leases",
        "note": standing.note(scope),
    }


def live(scope: Scope) -> dict[str, int]:
    """Count by state what is not over; where the page has counted it, the frame says what the page says."""
    if "live" not in scope.known:
        scope.known["live"] = dict(
            scope.leases().live().values_list("state").annotate(Count("pk")).order_by()
        )
    found: dict[str, int] = scope.known["live"]
    return found


def limited(spent: int, budget: Budget | None) -> dict[str, Any]:
    """Say what of its budget a project has spent, and where that leads."""
    if budget is None:
        return {"href": reverse("spend")}
    return {
        "sub": f"of {written(budget.limit_minor, budget.currency)}",
        "mini_percent": min(spent * 100 // budget.limit_minor, 100) if budget.limit_minor else 100,
        "kind": "bad" if spent >= budget.limit_minor else "",
        "href": reverse("budgets"),
    }


def told(scope: Scope, *, now: Any, running: int, wallet: list[dict[str, Any]]) -> list[dict[str, Any]]:
    currency = scope.tenant.currency
    month = now.astimezone(ZoneInfo(scope.tenant.time_zone))
    burn = half_up(meters.burning(scope, now=now), meters.NANO // 10 ** exponent_of(currency))
    budget = meters.budget(scope)
    spent = meters.spent(scope, now=now)
    return [
        {"label": "Burn now", "value": written(burn, currency), "unit": "/h",
         "href": f"{reverse('leases')}?state=active"},
        {"label": f"Spent in {month:%B}", "value": written(spent, currency), **limited(spent, budget)},
        {"label": "Running", "value": str(running), "sub": "lease" if running == 1 else "leases",
         "href": f"{reverse('leases')}?state=active"},
        *wallet,
    ]  # fmt: skip
