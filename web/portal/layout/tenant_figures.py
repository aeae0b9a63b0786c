"""Top bar figures of the tenant's pages: burn rate, month's spend, running, queued."""

from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import exponent_of, half_up
from billing.domain.money import format_minor as written
from billing.models import Budget
from broker.domain.lifecycle.states import LeaseState
from ports import clock
from web.portal.layout import account_status, usage_meters
from web.portal.page_context import Scope, scope_of

S = LeaseState


def tenant_figures(request: Any) -> dict[str, Any]:
    """Return counts and meters for a visitor inside a tenant; empty elsewhere.

    At most six queries, and six more for a prepaid tenant.
    """
    if getattr(request, "project", None) is None or not hasattr(request, "tenant"):
        return {}
    scope = scope_of(request)
    now = getattr(request, "now", None) or clock.now()
    counts = live_lease_counts(scope)
    meter = account_status.wallet_meter(scope, now=now) if request.roles.may("billing.read", ()) else []
    return {
        "counts": {"leases": sum(counts.values()), "queue": scope.known.get("queued", counts.get(S.QUEUED, 0))},
        "meters": tenant_meters(scope, now=now, running=counts.get(S.ACTIVE, 0), wallet=meter),
        "search_url": reverse("leases"),
        "search_hint": _("Search leases"),
        "note": account_status.account_status_notice(scope),
    }


def live_lease_counts(scope: Scope) -> dict[str, int]:
    """Count live leases by state, reusing the page's own count if it made one."""
    if "live" not in scope.known:
        scope.known["live"] = dict(scope.leases().live().values_list("state").annotate(Count("pk")).order_by())
    found: dict[str, int] = scope.known["live"]
    return found


def budget_meter(spent: int, budget: Budget | None) -> dict[str, Any]:
    """Return the share of its budget a project has spent, with a link."""
    if budget is None:
        return {"href": reverse("spend")}
    return {
        "sub": _("of {amount}").format(amount=written(budget.limit_minor, budget.currency)),
        "mini_percent": min(spent * 100 // budget.limit_minor, 100) if budget.limit_minor else 100,
        "kind": "danger" if spent >= budget.limit_minor else "",
        "href": reverse("budgets"),
    }


def tenant_meters(scope: Scope, *, now: Any, running: int, wallet: list[dict[str, Any]]) -> list[dict[str, Any]]:
    currency = scope.tenant.currency
    month = now.astimezone(ZoneInfo(scope.tenant.time_zone))
    burn = half_up(usage_meters.burn_rate(scope, now=now), usage_meters.NANO // 10 ** exponent_of(currency))
    budget = usage_meters.project_budget(scope)
    spent = usage_meters.month_spend(scope, now=now)
    return [
        {"label": _("Spend rate"), "value": written(burn, currency), "unit": "/h",
         "href": f"{reverse('leases')}?state=active"},
        {"label": _("Spent in {month:%B}").format(month=month),
         "value": written(spent, currency), **budget_meter(spent, budget)},
        {"label": _("Running"), "value": str(running), "sub": "lease" if running == 1 else "leases",
         "href": f"{reverse('leases')}?state=active"},
        *wallet,
    ]  # fmt: skip
