"""Data of the fleet map: GPUs coloured by state, tenant or class, with legend."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from broker.domain.lifecycle.states import PriceClass
from broker.services.inventory.gpu_catalogue import model_label
from broker.services.reports.fleet_summary import permille_of
from broker.services.reports.gpu_usage import (
    CHARGED,
    SCALE,
    FleetGpu,
    LeasedSlice,
    UnitUse,
    counted_devices,
    only_gpus,
    scaled,
)
from web.ui.formatting import format_profile

MAP_VIEWS = {"state": gettext_noop("State"), "tenant": gettext_noop("Tenant"), "class": gettext_noop("Price class")}
LARGE_UP_TO = 160  # above it the map is dense, with less text per GPU
USE_KINDS = {
    UnitUse.SOLD: "sold",
    UnitUse.SPOT: "spot",
    UnitUse.RESERVED: "reserved",
    UnitUse.FREE: "free",
    UnitUse.FRAGMENTED: "fragmented",
    UnitUse.UNHEALTHY: "unhealthy",
    UnitUse.MAINTENANCE: "maintenance",
}
KIND_WORDS = {
    "sold": gettext_noop("sold"),
    "spot": gettext_noop("sold as spot"),
    "reserved": gettext_noop("reserved"),
    "free": gettext_noop("free"),
    "fragmented": gettext_noop("fragmented"),
    "unhealthy": gettext_noop("unhealthy"),
    "maintenance": gettext_noop("maintenance"),
}
PRICE_CLASS_KINDS = {PriceClass.ON_DEMAND: "series-1", PriceClass.SPOT: "series-5", PriceClass.RESERVED: "series-3"}
PRICE_CLASS_WORDS = {
    "series-1": gettext_noop("on-demand"),
    "series-5": gettext_noop("spot"),
    "series-3": gettext_noop("reserved"),
}
TENANT_KINDS = ("series-1", "series-2", "series-3", "series-4", "series-5")
OTHER_TENANTS_KIND = "series-6"
UNHELD_KINDS = ("free", "fragmented", "unhealthy", "maintenance")
KEY_OUTLINES = {"reserved": "M0 0h12v4H0z", "fragmented": "M0 9h12v3H0z", "maintenance": "M0 5h12v2H0z"}
Spans = tuple[tuple[int, int, str], ...]  # start, size, kind


@dataclass(frozen=True)
class LegendKey:
    """One legend entry: a kind, its word and how many GPUs it amounts to."""

    kind: str
    label: str
    amount: int  # in parts of SCALE

    @property
    def tenths(self) -> str:
        return format_gpus(self.amount)

    @property
    def square(self) -> str:
        """Return the CSS class of its square in a legend."""
        return f"fill-{self.kind}" if self.kind in ("sold", "spot", "free") else self.kind

    @property
    def path(self) -> str:
        """Return its square's path in the legend of a dense map, where height has meaning."""
        return KEY_OUTLINES.get(self.kind, "M0 0h12v12H0z")


@dataclass(frozen=True)
class FleetMapData:
    """Everything the map draws."""

    by: str
    blocks: list[dict[str, Any]]
    keys: list[LegendKey]
    gpus: int  # and CPU blocks
    devices: str  # in words

    @property
    def dense(self) -> bool:
        return self.gpus > LARGE_UP_TO

    @property
    def alt_text(self) -> str:
        return _("Fleet map, {devices}. Use arrow keys to move between GPUs and Enter to open one.").format(
            devices=self.devices
        )


def draw_map(gpus: Sequence[FleetGpu], by: str, *, current: str = "") -> FleetMapData:
    """Arrange GPUs by cluster and node, and colour their runs."""
    painted, words = _coloured_runs(gpus, by)
    amounts: Counter[str] = Counter()
    for gpu in counted_devices(gpus):
        for _start, size, kind in painted[gpu.id]:
            amounts[kind] += scaled(size, gpu.grid)
    keys = [
        LegendKey(kind, word, amounts[kind]) for kind, word in words.items() if kind in UNHELD_KINDS or amounts[kind]
    ]
    compact = len(gpus) > LARGE_UP_TO
    blocks = [
        _cluster_block(name, list(its), painted, current=current, compact=compact)
        for name, its in groupby(gpus, key=lambda gpu: gpu.cluster_name)
    ]
    return FleetMapData(by, blocks, keys, len(gpus), format_devices(gpus))


def _coloured_runs(gpus: Sequence[FleetGpu], by: str) -> tuple[dict[str, Spans], dict[str, str]]:
    """Return the coloured runs of every GPU, and what each colour means."""
    rest = {kind: _(KIND_WORDS[kind]) for kind in UNHELD_KINDS}
    if by == "tenant":
        kinds, words = _tenant_colours(gpus)
        return _colour_by_lease(gpus, lambda held: kinds.get(held.tenant, OTHER_TENANTS_KIND)), words | rest
    if by == "class":
        return _colour_by_lease(gpus, lambda held: PRICE_CLASS_KINDS[held.price_class]), {
            kind: _(word) for kind, word in PRICE_CLASS_WORDS.items()
        } | rest
    # GPUs that look alike are coloured once. Their shared `look` lives as long as they do, so id() is a safe key.
    looks = {id(gpu.use_layout): gpu.use_layout for gpu in gpus}
    spans = {
        name: tuple((start, size, USE_KINDS[use]) for start, size, use, _ in each.runs) for name, each in looks.items()
    }
    words = {kind: _(word) for kind, word in KIND_WORDS.items()}
    return {gpu.id: spans[id(gpu.use_layout)] for gpu in gpus}, words


def _colour_by_lease(gpus: Sequence[FleetGpu], colour: Callable[[LeasedSlice], str]) -> dict[str, Spans]:
    return {
        gpu.id: tuple((r.start, r.size, colour(r.slice) if r.slice else USE_KINDS[r.use]) for r in gpu.unit_runs)
        for gpu in gpus
    }


def _tenant_colours(gpus: Sequence[FleetGpu]) -> tuple[dict[str, str], dict[str, str]]:
    """Assign a colour to each of the five largest tenants."""
    held: Counter[tuple[str, str]] = Counter()
    for gpu in gpus:
        for s in gpu.slices:
            held[s.tenant, s.tenant_name] += scaled(s.size, gpu.grid)
    largest = sorted(held, key=lambda tenant: (-held[tenant], tenant))[: len(TENANT_KINDS)]
    kinds = {tenant: kind for (tenant, _), kind in zip(largest, TENANT_KINDS, strict=False)}
    words = {kind: name for (_, name), kind in zip(largest, TENANT_KINDS, strict=False)}
    return kinds, words | {OTHER_TENANTS_KIND: "other tenants"}


def _cluster_block(
    name: str, gpus: list[FleetGpu], painted: dict[str, Spans], *, current: str, compact: bool
) -> dict[str, Any]:
    models = ", ".join(sorted({model_label(gpu.model) for gpu in gpus}))
    counted = counted_devices(gpus)
    sold = sum(scaled(gpu.units(*CHARGED), gpu.grid) for gpu in counted)
    return {
        "name": name,
        "note": _("{models} · {devices} · {scale} % sold").format(
            models=models, devices=format_devices(gpus), scale=permille_of(sold, len(counted) * SCALE) // 10
        ),
        "rows": [
            {
                "name": node,
                "words": f"{name} {node}",
                "url": node_url(pk),
                "device": "GPU" if has_gpus else "CPU block",
                "gpus": [_map_gpu(gpu, painted[gpu.id], current=current, compact=compact) for gpu in its],
            }
            for (node, pk, has_gpus), its in groupby(gpus, key=lambda gpu: (gpu.node_name, gpu.node, gpu.is_gpu))
        ],
    }


@lru_cache(maxsize=4096)
def node_url(pk: str) -> str:
    """Return the URL of a node's page.

    Cached: the map asks for the same hundred URLs every few seconds.
    """
    return reverse("ops-node", args=[pk])


def _map_gpu(gpu: FleetGpu, spans: Spans, *, current: str, compact: bool) -> dict[str, Any]:
    sold, aside = gpu.units(*CHARGED), f", {OUT_OF_SERVICE_WORDS[gpu.idle_use]}" if gpu.idle_use else ""
    words = _("{cluster_name} {node_name} {device}: {sold} of {grid} sold{aside}").format(
        cluster_name=gpu.cluster_name,
        node_name=gpu.node_name,
        device=gpu.name,
        sold=sold,
        grid=gpu.grid,
        aside=aside,
    )
    if not compact:
        words += "".join(
            _("; {profile} {tenant_name}, since {since:%d %b %H:%M} UTC").format(
                profile=format_profile(s.profile), tenant_name=s.tenant_name, since=s.since
            )
            for s in gpu.slices
        )
    return {
        "url": "" if compact else reverse("ops-gpu", args=[gpu.id]),
        "words": words,
        "summary": f"{sold}/{gpu.grid}{aside}",
        "index": gpu.index,
        "spans": spans,
        "cells": gpu.grid,
        "current": gpu.id == current,
        "ill": gpu.idle_use is UnitUse.UNHEALTHY,
    }


OUT_OF_SERVICE_WORDS = {UnitUse.UNHEALTHY: "unhealthy", UnitUse.MAINTENANCE: "in maintenance"}


def format_devices(gpus: Sequence[FleetGpu]) -> str:
    """Count GPUs and CPU blocks in words: 16 GPUs, 4 CPU blocks."""
    count = len(only_gpus(gpus))
    blocks = len(gpus) - count
    words = [
        ngettext("{n:,} GPU", "{n:,} GPUs", count).format(n=count) if count or not blocks else "",
        ngettext("{n:,} CPU block", "{n:,} CPU blocks", blocks).format(n=blocks) if blocks else "",
    ]
    return ", ".join(text for text in words if text)


def format_gpus(scaled_gpus: int) -> str:
    """Format parts of SCALE as GPUs with one decimal, rounded half up."""
    count = (scaled_gpus * 20 + SCALE) // (2 * SCALE)
    return f"{count // 10:,}.{count % 10}"
