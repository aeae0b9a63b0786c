"""What the frame around every operators' page shows: how much is sold, earned and waited for."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.urls import reverse

from billing.domain.money import exponent_of, half_up, shown
from billing.services import earnings
from broker.services.fleet import queue, summary
from broker.services.proofs import Proof
from ports import clock
from tenants.services.walls import as_staff

NANO = 10**9


@dataclass(frozen=True)
class Frame:
    """`burning` is 10⁻⁹ units an hour by currency."""

    fleet: summary.Summary
    waiting: queue.Figures
    burning: dict[str, int]

    @property
    def earning(self) -> str:
        """What all of it earns in an hour; the installation's own currency first."""
        first = per_hour(self.burning.get(settings.CURRENCY, 0), settings.CURRENCY)
        rest = [
            per_hour(nano, code) for code, nano in sorted(self.burning.items()) if code != settings.CURRENCY
        ]
        return " + ".join([first, *rest])


def frame(request: Any, fleet: summary.Summary | None = None) -> Frame:
    """Read the figures once a request: three queries, two where the page knows its fleet already."""
    if not hasattr(request, "ops_frame"):
        now = clock.now()
        with nullcontext() if getattr(request, "sees_all", False) else as_staff():
            request.ops_frame = Frame(
                fleet or summary.read(), queue.figures(now=now), earnings.now_per_hour(now=now)
            )
    return request.ops_frame  # type: ignore[no-any-return]


def figures(request: Any) -> dict[str, Any]:
    """Return what config.look puts around the page."""
    seen = frame(request)
    fleet, waiting = seen.fleet, seen.waiting
    here = reverse("control-room")
    sold = f"{fleet.sold_permille // 10}.{fleet.sold_permille % 10}"
    slowest = f"· p95 {age(waiting.p95)}" if waiting.p95 is not None else ""
    return {
        "fleet": f"{count(fleet.clusters, 'cluster')}, {count(fleet.cards, 'card')}",
        "counts": {
            "ops-clusters": fleet.clusters,
            "ops-cards": fleet.cards,
            "ops-queue": waiting.waiting,
        },
        "meters": (
            {"label": "Sold now", "value": sold, "unit": " %", "href": here},
            {"label": "Earning", "value": seen.earning, "unit": "/h", "href": reverse("ops-offerings")},
            {"label": "Queue", "value": str(waiting.waiting), "sub": slowest, "href": reverse("ops-queue")},
            proven(request),
        ),
    }


def proven(request: Any) -> dict[str, Any]:
    """Tell how many proofs hold, where the page has checked them; else the meter asks by itself, after the page."""
    found = getattr(request, "proofs", None)
    meter = {"label": "Proofs", "href": reverse("ops-system"), "id": "proven", "phone": False}
    if found is None:
        own = (
            request.resolver_match.url_name == "control-room"
        )  # its strip at the foot brings the meter along
        return {**meter, "value": "check", "source": "" if own else reverse("ops-proofs")}
    return {**meter, **holding(found)}


def holding(found: Sequence[Proof]) -> dict[str, str]:
    """Write how many of the proofs hold."""
    good = sum(proof.holds for proof in found)
    return {"value": f"{good} of {len(found)}", "kind": "ok" if good == len(found) else "bad"}


def per_hour(nano: int, currency: str) -> str:
    return shown(half_up(nano * 10 ** exponent_of(currency), NANO), currency)


def count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def age(waited: timedelta) -> str:
    """Write a wait in its largest unit."""
    seconds = int(waited.total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
