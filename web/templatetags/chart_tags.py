"""Template tags that draw charts as SVG from plain values."""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.safestring import mark_safe as safe  # every drawing escapes its texts
from django.utils.translation import gettext as _

from billing.domain.money import exponent_of
from web.ui import formatting
from web.ui.charts import fleet, indicators, series_charts
from web.ui.svg import BarPart, SliceSpan, fill_attribute

register = template.Library()


@register.simple_tag
def slice_glyph(
    start: int | None = None, size: int = 0, cells: int = 8, kind: str = "slice-held", label: str = ""
) -> SafeString:
    """Draw a lease's slices on their GPU; kind slice-held, slice-coming or slice-ended."""
    return safe(indicators.slice_glyph(start, size, cells, kind, label))


@register.simple_tag
def quota_bar(
    used: float, total: float, held: float = 0, label: str = "", height: int = 8, kind: str = "fill"
) -> SafeString:
    """Draw a quota bar: used solid, held dotted.

    The sentence with the figures is beside it.
    """
    words = label or _("{used:g} of {total:g} used").format(used=used, total=total) + (
        _(", {held:g} held").format(held=held) if held else ""
    )
    return safe(indicators.share_bar([BarPart(kind, used), BarPart("held", held)], total, height, words))


@register.simple_tag
def ceiling_bar(spent: int, forecast: int, taken: int, limit: int, marks: Sequence[int], label: str) -> SafeString:
    """Draw a budget bar: spent, forecast, held, its limit, and marks at thresholds."""
    kind = "fill danger" if spent >= limit else "fill"
    parts = [
        BarPart(kind, spent),
        BarPart("fill soft", max(forecast - spent, 0)),
        BarPart("held", max(taken - max(forecast, spent), 0)),
    ]
    return safe(indicators.budget_bar(parts, limit, marks, label))


@register.simple_tag
def parts_bar(parts: Sequence[Any], label: str, total: float = 0, height: int = 18) -> SafeString:
    """Draw shares of a total side by side; a part is (kind, amount)."""
    shares = [BarPart(*part) for part in parts]
    return safe(indicators.share_bar(shares, total or sum(part.amount for part in shares), height, label))


@register.simple_tag
def legend_key(kind: str) -> SafeString:
    """Draw a legend's square of a colour or pattern."""
    square = f'<rect {fill_attribute(kind)} width="12" height="12"/>'
    return safe(f'<svg viewBox="0 0 12 12" aria-hidden="true">{square}</svg>')


@register.simple_tag
def sparkline(values: Sequence[float | None], label: str = "", top: float = 100, idle: bool = False) -> SafeString:
    """Draw the last hour as a sparkline."""
    return safe(indicators.sparkline(values, top, label, idle=idle))


@register.simple_tag
def budget_ring(
    spent: float, limit: float, held: float = 0, forecast: float = 0, title: str = "", note: str = "", label: str = ""
) -> SafeString:
    """Draw a budget as a ring; its title defaults to the share spent.

    At most one per page.
    """
    words = title or f"{100 * spent / limit if limit else 0:.0f} %"
    return safe(indicators.budget_ring(spent, limit, held, forecast, title=words, note=note, label=label))


@register.simple_tag
def gpu_drawing(spans: Sequence[Any], cells: int = 8, label: str = "Placement on the GPU") -> SafeString:
    """Draw one GPU large; a span is (start, size, kind, word).

    Kinds are own-slice, other-slice, free-slice, fill-sold, fill-spot, idle …
    """
    return safe(indicators.gpu_drawing([SliceSpan(*span) for span in spans], cells, label))


@register.simple_tag
def start_histogram(counts: Sequence[float], split: int | None = None, label: str = "") -> SafeString:
    """Draw a histogram of start times."""
    return safe(indicators.start_histogram(counts, split, label))


@register.simple_tag
def wait_line(p50: float, p90: float, p50_word: str, p90_word: str, end_word: str, label: str) -> SafeString:
    """Draw when a queued lease will probably start."""
    return safe(indicators.wait_line(p50, p90, (p50_word, p90_word, end_word), label))


@register.simple_tag
def bar_chart(
    columns: Sequence[dict[str, Any]],
    series: Sequence[str],
    currency: str,
    label: str,
    now_at: float | Decimal | None = None,
) -> SafeString:
    """Draw money (minor units) per day, stacked by series of classes series-1 … series-6."""
    days = [series_charts.ChartColumn(**column) for column in columns]
    return safe(
        series_charts.stacked_bars(
            days, series, axis_formatter(currency), label=label, now_at=None if now_at is None else float(now_at)
        )
    )


@register.simple_tag
def hours_chart(
    columns: Sequence[dict[str, Any]], series: Sequence[str], label: str, now_at: float | None = None
) -> SafeString:
    """Draw seconds per day as hours, stacked by series of classes or patterns."""
    days = [
        series_charts.ChartColumn(each["label"], tuple(seconds / 3600 for seconds in each["amounts"]))
        for each in columns
    ]
    return safe(series_charts.stacked_bars(days, series, lambda hours: f"{hours:g} h", label=label, now_at=now_at))


@register.simple_tag
def budget_chart(track: dict[str, Any], currency: str, label: str) -> SafeString:
    """Draw the month's running total (minor units) against its limit."""
    return safe(
        series_charts.running_total_chart(series_charts.RunningTotal(**track), axis_formatter(currency), label=label)
    )


@register.simple_tag
def rate_chart(track: dict[str, Any], currency: str) -> SafeString:
    """Draw spend per hour (10⁻⁹ currency units) of equal steps, with its limit."""
    write = axis_formatter(currency)
    minor = 10 ** exponent_of(currency) / formatting.NANO
    return safe(
        series_charts.step_chart(
            [nano * minor for nano in track["steps"]],
            write,
            label=track["label"],
            ticks=track["ticks"],
            limit=track["limit"] * minor,
            limit_word=track["limit_word"],
        )
    )


def axis_formatter(currency: str) -> series_charts.AxisFormatter:
    """Return a formatter of axis values: whole units, thousands as k."""
    unit = 10 ** exponent_of(currency)

    def write(minor: float) -> str:
        whole = minor / unit
        return formatting.currency_symbol(currency) + (f"{whole / 1000:g}k" if whole >= 1000 else f"{whole:g}")

    return write


@register.simple_tag
def fleet_map(blocks: Sequence[dict[str, Any]], label: str) -> SafeString:
    """Draw the whole fleet from plain rows; dense above 160 GPUs."""
    return safe(fleet.fleet_map([map_cluster(block) for block in blocks], label))


def map_cluster(block: dict[str, Any]) -> fleet.MapCluster:
    """Return a cluster from plain values, since lower layers cannot use these classes."""
    rows = tuple(
        fleet.MapNode(
            name=row["name"],
            gpus=tuple(map(map_gpu, row["gpus"])),
            url=row.get("url", ""),
            words=row.get("words", ""),
            device=row.get("device", fleet.GPU),
        )
        for row in block["rows"]
    )
    return fleet.MapCluster(block["name"], block.get("note", ""), rows)


def map_gpu(gpu: dict[str, Any]) -> fleet.MapGpu:
    """Return a GPU; its spans are (start, size, kind)."""
    return fleet.MapGpu(**{**gpu, "spans": slice_spans(tuple(gpu["spans"]))})


@lru_cache(maxsize=4096)
def slice_spans(spans: tuple[tuple[int, int, str], ...]) -> tuple[SliceSpan, ...]:
    return tuple(SliceSpan(*span) for span in spans)


@register.simple_tag
def promise_art(rows: Sequence[Sequence[Sequence[Any]]]) -> SafeString:
    """Draw rows of GPUs as an ornament.

    Each GPU is a list of (start, size, kind).
    """
    return safe(indicators.gpu_ornament([[[SliceSpan(*span) for span in gpu] for gpu in row] for row in rows]))


@register.simple_tag
def empty_art(held: int = 4) -> SafeString:
    """Draw a GPU with some of its eight slices taken, for an empty list."""
    return safe(indicators.empty_list_drawing(int(held)))
