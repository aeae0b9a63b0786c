"""Top bar figures of the operators' pages: capacity sold, revenue, queue, integrity checks."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import exponent_of, format_minor, half_up
from billing.services.reports import earnings
from broker.services.reports import fleet_summary, queue_report
from broker.services.reports.invariant_checks import InvariantResult
from ports import clock
from tenants.services.rls import staff_scope

NANO = 10**9


@dataclass(frozen=True)
class OperatorFigures:
    """Figures of the top bar."""

    fleet: fleet_summary.FleetSummary
    queue: queue_report.QueueFigures
    hourly_revenue: dict[str, int]  # by currency, in 10⁻⁹ currency units

    @property
    def revenue_per_hour(self) -> str:
        """Return revenue per hour, the installation's own currency first."""
        own, revenue = settings.CURRENCY, self.hourly_revenue
        rest = [format_per_hour(nano, code) for code, nano in sorted(revenue.items()) if code != own]
        return " + ".join([format_per_hour(revenue.get(own, 0), own), *rest])


def load_operator_figures(request: Any, fleet: fleet_summary.FleetSummary | None = None) -> OperatorFigures:
    """Return the figures, read once per request.

    Three queries, two where the page has loaded its fleet already.
    """
    if not hasattr(request, "operator_figures"):
        now = clock.now()
        # the page of an error is drawn after the page it replaces, and its staff access, ended
        reads_all = getattr(request, "sees_all", False) and not getattr(request, "is_error_page", False)
        with nullcontext() if reads_all else staff_scope():
            request.operator_figures = OperatorFigures(
                fleet or fleet_summary.load_summary(),
                queue_report.load_queue_figures(now=now),
                earnings.hourly_revenue(now=now),
            )
    return request.operator_figures  # type: ignore[no-any-return]


def top_bar_context(request: Any) -> dict[str, Any]:
    """Return the navigation counts and top bar figures."""
    figures = load_operator_figures(request)
    fleet, queue = figures.fleet, figures.queue
    control_room_url = reverse("control-room")
    sold = f"{fleet.sold_permille // 10}.{fleet.sold_permille % 10}"
    slowest = f"· p95 {format_age(queue.p95)}" if queue.p95 is not None else ""
    return {
        "fleet": f"{format_count(fleet.clusters, 'cluster')}, {format_count(fleet.gpus, 'GPU')}",
        "counts": {"ops-clusters": fleet.clusters, "ops-gpus": fleet.gpus, "ops-queue": queue.waiting},
        "meters": (
            {"label": _("Sold now"), "value": sold, "unit": " %", "href": control_room_url},
            {"label": _("Revenue"), "value": figures.revenue_per_hour, "unit": "/h", "href": reverse("ops-offerings")},
            {"label": _("Queue"), "value": str(queue.waiting), "sub": slowest, "href": reverse("ops-queue")},
            integrity_figure(request),
        ),
        "alerts": getattr(request, "needs_attention", None),
        "alerts_url": f"{control_room_url}#needs-attention",
        "alerts_source": reverse("ops-attention"),
        "search_url": reverse("ops-search"),
        "search_hint": _("Search by name or ID"),
    }


def integrity_figure(request: Any) -> dict[str, Any]:
    """Return the integrity figure: how many checks hold.

    Where the page has not read the checks, the figure fetches the count itself after the page has loaded.
    """
    found = getattr(request, "integrity_checks", None)
    figure = {"label": _("Integrity checks"), "href": reverse("ops-system"), "id": "integrity-count", "phone": False}
    if found is None:
        match = request.resolver_match  # None on the page of an address that does not exist
        own = match is not None and match.url_name == "control-room"  # its checks at the foot of the page update it
        return {**figure, "value": "check", "source": "" if own else reverse("ops-integrity-checks")}
    return {**figure, **format_checks_passed(found)}


def format_checks_passed(results: Sequence[InvariantResult]) -> dict[str, str]:
    """Return the passed count as text, with its badge kind."""
    passed = sum(check.holds for check in results)
    return {
        "value": _("{passed} of {all}").format(passed=passed, all=len(results)),
        "kind": "success" if passed == len(results) else "danger",
    }


def format_per_hour(nano: int, currency: str) -> str:
    return format_minor(half_up(nano * 10 ** exponent_of(currency), NANO), currency)


def format_count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def format_age(waited: timedelta) -> str:
    """Format a wait in its largest unit."""
    seconds = int(waited.total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
