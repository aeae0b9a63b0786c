"""Metrics of a lease: four charts of its GPU, and what stands out in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.domain.lifecycle.states import LeaseState
from broker.domain.telemetry.throttle_reasons import throttle_words
from broker.models import Lease
from broker.services.telemetry import lease_metrics
from broker.services.telemetry.lease_metrics import LeaseMetrics, MetricsPoint, MetricsScope
from tenants.services.errors import ObjectNotFound
from web.http.query_strings import LinkOption, chosen_value, link_options
from web.portal.leases.lease_pages import find_lease_row
from web.portal.leases.lease_tabs import lease_tabs
from web.portal.page_context import PageRequest, tenant_page

RANGES = {
    "1": gettext_noop("1 h"),
    "6": gettext_noop("6 h"),
    "24": gettext_noop("24 h"),
    "all": gettext_noop("Since start"),
}
USUAL_RANGE, ALL = "1", "all"
MIB_PER_GB = 1024
IDLE_BELOW = 20  # per mille
JOULES_PER_KWH = 3_600_000


@dataclass(frozen=True, slots=True)
class MetricChart:
    """One chart with its latest value."""

    id: str
    label: str
    note: str
    value: str
    plot: dict[str, Any]
    description: str  # for those who do not see it


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that stands out in the window."""

    icon: str
    title: str
    text: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class LeaseMetricsPage:
    """The metrics of one lease as its page shows them."""

    lease: Lease
    tabs: Sequence[LinkOption]
    ranges: Sequence[LinkOption]
    metrics: LeaseMetrics
    charts: Sequence[MetricChart]
    findings: Sequence[Finding]
    mean_power_w: int | None
    energy_kwh: str
    known_percent: int

    @property
    def is_live(self) -> bool:
        return self.lease.state == LeaseState.ACTIVE

    @property
    def is_shared(self) -> bool:
        """Return whether others may use the GPU that was measured."""
        return self.metrics.scope is MetricsScope.GPU

    @property
    def legend(self) -> list[dict[str, str]]:
        return [
            {"kind": "fill-throttled", "label": _("Throttled by heat or power supply"), "value": ""},
            {"kind": "fill-gap", "label": _("No data"), "value": ""},
        ]


@tenant_page("leases.read")
def show_lease_metrics(request: PageRequest, pk: str) -> HttpResponse:
    lease = find_lease_row(request, pk).lease
    if not lease.offering.has_gpu:
        raise ObjectNotFound(_("This lease has no GPU."), fix=_("Open its overview."))
    chosen = chosen_value(request, "range", RANGES, USUAL_RANGE)
    since, until = lease_metrics.window(lease, None if chosen == ALL else float(chosen), now=request.now)
    found = lease_metrics.read_lease_metrics(lease, since=since, until=until)
    page = LeaseMetricsPage(
        lease=lease,
        tabs=lease_tabs(lease, "lease-metrics"),
        ranges=link_options(request, "range", [(value, _(label)) for value, label in RANGES.items()], chosen),
        metrics=found,
        charts=list(build_charts(lease, found, request.tenant.time_zone)),
        findings=list(find_gaps(found)) + list(find_throttling(found)),
        **_energy(found),
    )
    return render(request, "leases/metrics.html", {"page": page})


def build_charts(lease: Lease, metrics: LeaseMetrics, time_zone: str) -> Iterator[MetricChart]:
    """Build the charts of activity, memory, power and temperature."""
    whole = _("whole GPU")
    own = _("own slice") if metrics.scope is MetricsScope.SLICE else whole
    model = lease.offering.gpu_model
    size_gb = lease.offering.memory_gb if metrics.scope is MetricsScope.SLICE or model is None else model.memory_gb
    percent = [_scaled(point.engine_active, 10) for point in _steps(metrics)]
    memory = [_scaled(point.memory_used_mib, MIB_PER_GB) for point in _steps(metrics)]
    power = [_scaled(point.power_dw, 10) for point in _steps(metrics)]
    heat = [_scaled(point.temperature_c, 1) for point in _steps(metrics)]
    size = _("%(scope)s, of %(size)s GB") % {"scope": own, "size": size_gb}
    shown = (
        (_("GPU activity"), own, "activity", percent, "%", 100.0, "--s1"),
        (_("Memory"), size, "memory", memory, "GB", float(size_gb), "--s2"),
        (_("Power"), whole, "power", power, "W", 0.0, "--s3"),
        (_("Temperature"), whole, "temperature", heat, "°C", 100.0, "--s4"),
    )
    times = [int(point.at.timestamp()) for point in _steps(metrics)]
    for label, note, key, values, unit, top, colour in shown:
        known = [value for value in values if value is not None]
        latest = next((value for value in reversed(values) if value is not None), None)
        yield MetricChart(
            id=f"plot-{key}",
            label=label,
            note=note,
            value="–" if latest is None else f"{latest:g} {unit}",
            plot={
                "tz": time_zone,
                "max": top or _round_up(max(known, default=0)),
                "unit": f" {unit}",
                "size": 58,
                "series": [{"colour": colour, "fill": True}],
                "marks": list(_marks(metrics)),
                "since": int(metrics.since.timestamp()),
                "until": int(metrics.until.timestamp()),
                "rows": [times, values],
            },
            description=_("%(label)s between %(least)s and %(most)s %(unit)s")
            % {"label": label, "least": min(known, default="–"), "most": max(known, default="–"), "unit": unit},
        )


def _steps(metrics: LeaseMetrics) -> list[MetricsPoint]:
    """Return the points, with an unknown one in each gap."""
    found: list[MetricsPoint] = []
    step = timedelta(seconds=metrics.step_s)
    for point in metrics.points:
        if found and point.at - found[-1].at > step:
            found.append(MetricsPoint(found[-1].at + step))
        found.append(point)
    return found


def _marks(metrics: LeaseMetrics) -> Iterator[dict[str, Any]]:
    for finding in find_gaps(metrics):
        yield {"at": int(finding.since.timestamp()), "to": int(finding.until.timestamp()), "colour": "--ink-3"}
    for finding in find_throttling(metrics):
        yield {"at": int(finding.since.timestamp()), "to": int(finding.until.timestamp()), "colour": "--wait-mark"}


def find_gaps(metrics: LeaseMetrics) -> Iterator[Finding]:
    """Return the times for which nothing was measured."""
    step = timedelta(seconds=metrics.step_s)
    for before, after in zip(metrics.points, metrics.points[1:], strict=False):
        if after.at - before.at > 2 * step:
            since, until = before.at + step, after.at
            minutes = max(1, round((until - since).total_seconds() / 60))
            yield Finding(
                "activity",
                _("No data for %(minutes)s min") % {"minutes": minutes},
                _("Nothing was measured. The lease is charged by its state, not by these values."),
                since,
                until,
            )


def find_throttling(metrics: LeaseMetrics) -> Iterator[Finding]:
    """Return the times at which heat or the power supply slowed the GPU down."""
    step = timedelta(seconds=metrics.step_s)
    run: list[MetricsPoint] = []
    for point in [*metrics.points, None]:
        if point is not None and point.is_throttled and (not run or point.at - run[-1].at <= 2 * step):
            run.append(point)
            continue
        if run:
            minutes = max(1, round((run[-1].at + step - run[0].at).total_seconds() / 60))
            why = ", ".join(dict.fromkeys(word for each in run for word in throttle_words(each.throttle_reasons)))
            yield Finding(
                "flame",
                _("Throttled for %(minutes)s min") % {"minutes": minutes},
                _("The GPU ran slower: %(why)s.") % {"why": why},
                run[0].at,
                run[-1].at + step,
            )
        run = [point] if point is not None and point.is_throttled else []


def _energy(metrics: LeaseMetrics) -> dict[str, Any]:
    """Return mean power, energy, and how much of the window is known."""
    powers = [point.power_dw for point in metrics.points if point.power_dw is not None]
    joules = sum(powers) / 10 * metrics.step_s
    known = [point for point in metrics.points if point.engine_active is not None]
    return {
        "mean_power_w": round(sum(powers) / len(powers) / 10) if powers else None,
        "energy_kwh": f"{joules / JOULES_PER_KWH:.2f}",
        "known_percent": min(100, round(100 * len(known) / metrics.expected)) if metrics.expected else 0,
    }


def _scaled(value: int | None, by: int) -> float | None:
    return None if value is None else round(value / by, 1)


def _round_up(value: float) -> int:
    """Return a round number above a value, for the top of a chart."""
    return next(top for top in (50, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 10_000) if top >= value)
