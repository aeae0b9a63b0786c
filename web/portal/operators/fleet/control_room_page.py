"""Control room: the fleet's use and revenue, its map, and what needs attention."""

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.conf import settings
from django.http import HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.domain.money import Money
from billing.services.reports import earnings
from broker.services.reports import attention_items, fleet_gpus, fleet_summary, fleet_usage
from broker.services.reports.fleet_summary import permille_of
from broker.services.reports.gpu_usage import SCALE, FleetGpu, UnitUse, gpus_by_use
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.layout.operator_figures import OperatorFigures, format_age, format_count, load_operator_figures
from web.portal.layout.usage_meters import format_change_against
from web.portal.operators.fleet import attention, gpu_map
from web.portal.operators.fleet.gpu_panel import GpuPanel, gpu_panel_now
from web.portal.operators.page_context import OperatorRequest, operator_page

WEEK = timedelta(days=7)
USE_BARS = (
    ("fill-sold", gettext_noop("Sold"), (UnitUse.SOLD, UnitUse.SPOT)),
    ("reserved", gettext_noop("Reserved, not charged"), (UnitUse.RESERVED,)),
    ("fill-free", gettext_noop("Idle"), (UnitUse.FREE,)),
    ("fragmented", gettext_noop("Fragmented"), (UnitUse.FRAGMENTED,)),
    ("unhealthy", gettext_noop("Unhealthy"), (UnitUse.UNHEALTHY,)),
    ("maintenance", gettext_noop("Maintenance"), (UnitUse.MAINTENANCE,)),
)


@operator_page("control_room")
def show_control_room(request: OperatorRequest) -> HttpResponse:
    """Show the whole fleet on one page."""
    return render(request, "operators/fleet/control_room.html", {"page": build_control_room_page(request)})


@operator_page("fleet_map", repeats=True)
def show_fleet_map(request: OperatorRequest) -> HttpResponse:
    """Return the map alone, or 304 if it has not changed."""
    page = build_fleet_map_page(request, fleet_gpus.load_gpus(), request.GET.get("gpu", ""))
    if page.etag in request.headers.get("If-None-Match", ""):
        return HttpResponseNotModified(headers={"ETag": page.etag})
    response = render(request, "operators/fleet/_fleet_map.html", {"page": page})
    response["ETag"], response["Cache-Control"] = page.etag, "private, no-cache"
    return response


@dataclass(frozen=True, slots=True)
class FleetMapPage:
    """The map of the fleet in one colouring, and the others there are."""

    map: gpu_map.FleetMapData
    by: str
    current: str  # id of the GPU whose panel is open

    @property
    def views(self) -> list[dict[str, Any]]:
        here = reverse("control-room")
        return [
            {"url": f"{here}?by={name}", "label": label, "current": name == self.by}
            for name, label in gpu_map.MAP_VIEWS.items()
        ]

    @property
    def etag(self) -> str:
        keys = [(key.kind, key.label, key.tenths) for key in self.map.keys]
        content = msgspec.json.encode([self.map.blocks, keys, self.by])
        return f'"{hashlib.sha256(content).hexdigest()[:20]}"'

    @property
    def address(self) -> str:
        return f"{reverse('ops-fleet-map')}?{urlencode({'by': self.by, 'gpu': self.current})}"

    @property
    def conditional(self) -> str:
        return json.dumps({"If-None-Match": self.etag})


def build_fleet_map_page(request: OperatorRequest, fleet: list[FleetGpu], current: str) -> FleetMapPage:
    """Draw the map in the colouring that the query string names."""
    by = request.GET.get("by", "state")
    by = by if by in gpu_map.MAP_VIEWS else "state"
    return FleetMapPage(gpu_map.draw_map(fleet, by, current=current), by, current)


@dataclass(frozen=True, slots=True)
class ControlRoomPage:
    """Use and revenue of the fleet, its map, and what needs attention."""

    totals: OperatorFigures
    figure_texts: dict[str, Any]
    revenue: dict[str, Any]
    gpu_hours: dict[str, Any]
    needs: list[attention_items.AttentionItem]
    chosen: GpuPanel | None
    fleet_map: FleetMapPage

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("GPUs with their slices"), "ops/gpus", limit=API_PAGE_SIZE)]


def build_control_room_page(request: OperatorRequest) -> ControlRoomPage:
    """Read the whole fleet."""
    fleet = fleet_gpus.load_gpus()
    figures = load_operator_figures(request, fleet_summary.summarise(fleet))
    needs = attention.find_needs(request, fleet, figures)
    request.needs_attention = len(needs)
    chosen = _chosen_gpu(fleet, needs)
    return ControlRoomPage(
        totals=figures,
        figure_texts=_figure_texts(figures, fleet),
        revenue=_revenue_context(request),
        gpu_hours=_hours_context(request, fleet),
        needs=needs,
        chosen=gpu_panel_now(chosen, now=request.now) if chosen else None,
        fleet_map=build_fleet_map_page(request, fleet, chosen.id if chosen else ""),
    )


def _chosen_gpu(fleet: list[FleetGpu], wanted: list[attention_items.AttentionItem]) -> FleetGpu | None:
    """Choose the GPU to describe first: one in trouble, else the most shared."""
    troubled = {need.subject for need in wanted if need.kind is attention_items.AttentionKind.GPU}
    return max(fleet, key=lambda gpu: (gpu.id in troubled, len(gpu.slices)), default=None)


def _figure_texts(figures: OperatorFigures, fleet: list[FleetGpu]) -> dict[str, Any]:
    """Return the text below each figure."""
    lost, waiting = gpus_by_use(fleet)[UnitUse.FRAGMENTED], figures.queue
    oldest = _(", oldest {oldest}").format(oldest=format_age(waiting.oldest)) if waiting.oldest is not None else ""
    return {
        "sold": format_permille(figures.fleet.sold_permille),
        "sold_note": _("{sold} of {gpus:,} GPUs").format(
            sold=gpu_map.format_gpus(figures.fleet.sold), gpus=figures.fleet.gpus
        ),
        "revenue_note": _("{active} active").format(active=format_count(figures.fleet.active, "lease")),
        "queue_note": _("{waiting:,} queued{oldest}").format(waiting=waiting.waiting, oldest=oldest),
        "queue_kind": "warning" if waiting.overdue else "",
        "lost": format_permille(permille_of(lost, figures.fleet.gpus * SCALE)),
        "lost_note": _("{lost} GPUs").format(lost=gpu_map.format_gpus(lost)),
    }


def format_permille(permille: int) -> str:
    return f"{permille // 10:,}.{permille % 10}"


def _revenue_context(request: OperatorRequest) -> dict[str, Any]:
    """Compare today's revenue with the same hours a week ago."""
    today = fleet_usage.start_of_day(request.now)
    earned, a_week_ago = earnings.revenue_over((today, request.now), (today - WEEK, request.now - WEEK))
    exact, before = (each.get(settings.CURRENCY, 0) for each in (earned, a_week_ago))
    rest = [Money.of_exact(e, code) for code, e in sorted(earned.items()) if code != settings.CURRENCY]
    words = _("last {now:%A}, same hours").format(now=request.now)
    return {
        "today": Money.of_exact(exact, settings.CURRENCY),
        "others": rest,
        "note": format_change_against(exact, before, words) or _("no revenue {words}").format(words=words),
    }


def _hours_context(request: OperatorRequest, fleet: list[FleetGpu]) -> dict[str, Any]:
    usage = fleet_usage.measure_fleet_usage(fleet_usage.start_of_day(request.now), fleet, now=request.now)
    parts = [(kind, _(word), sum(usage.by_use[use] for use in uses)) for kind, word, uses in USE_BARS]
    return {
        "bar": [(kind, amount) for kind, _word, amount in parts],
        "keys": [
            {"kind": kind, "label": word, "value": gpu_map.format_gpus(amount // 3600)} for kind, word, amount in parts
        ],
        "explained": gpu_map.format_gpus(usage.sum_by_use // 3600),
        "total": gpu_map.format_gpus(usage.total // 3600),
        "complete": usage.sum_by_use == usage.total,
    }
