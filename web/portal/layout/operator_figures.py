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
    """Figures of the top bar; `burning` is 10⁻⁹ units an hour by currency."""

    fleet: fleet_summary.FleetSummary
    waiting: queue_report.QueueFigures
    burning: dict[str, int]

    @property
    def earning(self) -> str:
        """Return revenue per hour, the installation's own currency first."""
        first = format_per_hour(self.burning.get(settings.CURRENCY, 0), settings.CURRENCY)
        rest = [format_per_hour(nano, code) for code, nano in sorted(self.burning.items()) if code != settings.CURRENCY]
        return " + ".join([first, *rest])


def operator_figures(request: Any, fleet: fleet_summary.FleetSummary | None = None) -> OperatorFigures:
    """Return the figures, read once per request.

    Three queries, two where the page has loaded its fleet already.
    """
    if not hasattr(request, "ops_frame"):
        now = clock.now()
        with nullcontext() if getattr(request, "sees_all", False) else staff_scope():
            request.ops_frame = OperatorFigures(
                fleet or fleet_summary.load_summary(),
                queue_report.load_queue_figures(now=now),
                earnings.hourly_revenue(now=now),
            )
    return request.ops_frame  # type: ignore[no-any-return]


def layout_figures(request: Any) -> dict[str, Any]:
    """Return counts and meters for the page layout."""
    seen = operator_figures(request)
    fleet, waiting = seen.fleet, seen.waiting
    here = reverse("control-room")
    sold = f"{fleet.sold_permille // 10}.{fleet.sold_permille % 10}"
    slowest = f"· p95 {format_age(waiting.p95)}" if waiting.p95 is not None else ""
    return {
        "fleet": f"{format_count(fleet.clusters, 'cluster')}, {format_count(fleet.gpus, 'GPU')}",
        "counts": {"ops-clusters": fleet.clusters, "ops-gpus": fleet.gpus, "ops-queue": waiting.waiting},
        "meters": (
            {"label": _("Sold now"), "value": sold, "unit": " %", "href": here},
            {"label": _("Earning"), "value": seen.earning, "unit": "/h", "href": reverse("ops-offerings")},
            {"label": _("Queue"), "value": str(waiting.waiting), "sub": slowest, "href": reverse("ops-queue")},
            integrity_meter(request),
        ),
    }


def integrity_meter(request: Any) -> dict[str, Any]:
    """Return the integrity meter: how many checks hold.

    Where the page has not run the checks, the meter fetches the count itself after the page has loaded.
    """
    found = getattr(request, "integrity_checks", None)
    meter = {"label": _("Integrity checks"), "href": reverse("ops-system"), "id": "integrity-count", "phone": False}
    if found is None:
        own = request.resolver_match.url_name == "control-room"  # its checks at the foot of the page update the meter
        return {**meter, "value": "check", "source": "" if own else reverse("ops-integrity-checks")}
    return {**meter, **format_checks_passed(found)}


def format_checks_passed(found: Sequence[InvariantResult]) -> dict[str, str]:
    """Return how many integrity checks hold."""
    good = sum(check.holds for check in found)
    return {
        "value": _("{good} of {found}").format(good=good, found=len(found)),
        "kind": "success" if good == len(found) else "danger",
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
