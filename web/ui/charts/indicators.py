"""Small indicators as SVG: glyphs, bars, sparklines, rings.

Drawn on the server, they need no script, print, and stay sharp.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from django.utils.html import escape
from django.utils.translation import gettext as _

from web.ui.svg import BarPart, SliceSpan, fill_attribute, format_coordinate, format_points, rect, svg_image, text

RING_CIRCUMFERENCE = 376.99  # the ring's circumference at radius 60


@lru_cache(maxsize=2048)
def slice_glyph(start: int | None, size: int, cells: int = 8, kind: str = "slice-held", label: str = "") -> str:
    """Draw a GPU's memory slices with the lease's own highlighted.

    `start` None means it holds none.
    """
    step = 46 / cells
    own = range(0) if start is None else range(start, start + size)
    drawn = (rect(kind if c in own else "slice-cell", c * step, 0, step - 1, 14, 1) for c in range(cells))
    where = (
        _("memory slices {start} to {stop} of {cells}").format(start=own.start, stop=own.stop - 1, cells=cells)
        if own
        else _("no slice held")
    )
    return svg_image("slice-glyph", 46, 14, f"{label}: {where}" if label else where, *drawn)


def share_bar(parts: Sequence[BarPart], total: float, height: int = 8, label: str = "", gap: float = 0.15) -> str:
    """Draw shares of a total side by side, each as wide as its amount."""
    drawn, at = [f'<rect class="track" width="100%" height="{height}"/>'], 0.0
    for part in parts:
        width = min(100 * part.amount / total, 100 - at) if total else 0.0
        if width <= 0:
            continue
        seen = max(width - gap, 0.05)
        drawn.append(f'<rect {fill_attribute(part.kind)} x="{at:.2f}%" width="{seen:.2f}%" height="{height}"/>')
        at += width
    name = "share-bar share-bar-tall" if height > 12 else "share-bar"
    words = escape(label)
    return f'<svg class="{name}" height="{height}" role="img" aria-label="{words}">{"".join(drawn)}</svg>'


def budget_bar(parts: Sequence[BarPart], limit: float, marks: Iterable[int], label: str) -> str:
    """Draw a budget bar: its parts, its limit, and a mark at each threshold.

    What is taken may exceed the limit: then the limit moves to the left, at most to two thirds of the
    width.
    """
    taken = sum(part.amount for part in parts)
    total = min(max(limit, taken), limit * 1.5 or taken) * 1.005 or 1
    drawn, at = ['<rect class="track" y="4" width="100%" height="8" rx="2"/>'], 0.0
    for part in parts:
        width = min(100 * part.amount / total, 100 - at)
        if width > 0:
            seen = max(width - 0.15, 0.05)
            drawn.append(f'<rect {fill_attribute(part.kind)} x="{at:.2f}%" y="4" width="{seen:.2f}%" height="8"/>')
        at += width
    for percent in marks:
        x = percent * limit / total
        if percent != 100 and 0 < x < 100:
            drawn.append(f'<rect class="budget-mark" x="{x:.2f}%" y="1" width="1" height="14"/>')
    drawn.append(f'<rect class="limit" x="{100 * limit / total:.2f}%" y="0" width="2" height="16"/>')
    words = escape(label)
    return f'<svg class="budget-bar" height="16" role="img" aria-label="{words}">{"".join(drawn)}</svg>'


def sparkline(values: Sequence[float | None], top: float = 100, label: str = "", *, idle: bool = False) -> str:
    """Draw the last hour as a line; a missing sample leaves a gap."""
    step = 112 / max(len(values) - 1, 1)
    places = [None if v is None else (i * step, 24 - 22 * min(v, top) / top) for i, v in enumerate(values)]
    drawn = ['<path class="sparkline-base" d="M0 25h112"/>']
    for run in split_at_gaps(places):
        ends = ((run[0][0], 25.0), (run[-1][0], 25.0))
        drawn.append(f'<polygon class="sparkline-area" points="{format_points([ends[0], *run, ends[1]])}"/>')
        drawn.append(f'<polyline class="sparkline-line" points="{format_points(run)}"/>')
    last = places[-1] if places else None
    if last:
        x, y = format_coordinate(last[0]), format_coordinate(last[1])
        drawn.append(f'<circle class="sparkline-end" cx="{x}" cy="{y}" r="2.2"/>')
    return svg_image("sparkline sparkline-idle" if idle else "sparkline", 112, 26, label, *drawn)


def split_at_gaps(places: Iterable[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Split a series at its gaps."""
    found: list[list[tuple[float, float]]] = [[]]
    for place in places:
        if place is None:
            found.append([])
        else:
            found[-1].append(place)
    return [run for run in found if run]


def budget_ring(
    spent: float, limit: float, held: float = 0, forecast: float = 0, *, title: str, note: str, label: str
) -> str:
    """Draw a budget as a ring: spent solid, held violet, the forecast pale behind them."""
    whole = limit or 1
    s, h, f = (min(value / whole, 1.0) for value in (spent, spent + held, forecast))
    return svg_image(
        "budget-ring",
        132,
        132,
        label or _("{title} spent, {note}").format(title=title, note=note),
        '<g transform="rotate(-90 66 66)"><circle class="ring-track" cx="66" cy="66" r="60"/>',
        *(ring_arc("ring-forecast", h, f), ring_arc("ring-spent", 0.0, s), ring_arc("ring-held", s, h)),
        "</g>",
        text(title, 66, 70),
        text(note, 66, 88, "ring-note"),
    )


def ring_arc(name: str, start: float, end: float) -> str:
    """Draw an arc of the ring, or nothing if its length is zero."""
    length = (end - start) * RING_CIRCUMFERENCE
    if length <= 0:
        return ""
    dashes = (
        f'stroke-dasharray="{length:.2f} {RING_CIRCUMFERENCE}" stroke-dashoffset="{-start * RING_CIRCUMFERENCE:.2f}"'
    )
    return f'<circle class="{name}" cx="66" cy="66" r="60" {dashes}/>'


def gpu_drawing(spans: Sequence[SliceSpan], cells: int = 8, label: str = "Placement on the GPU") -> str:
    """Draw one GPU large, with slice labels and cell numbers below."""
    step = 340 / cells
    drawn = []
    for span in spans:
        x, width = span.start * step, span.size * step - 2
        drawn.append(rect(span.kind, x, 0, width, 40, 3))
        if span.label:
            tone = "on-colour" if span.kind in {"own-slice", "fill-sold"} else ""
            drawn.append(text(span.label, x + width / 2, 24, f"align-middle {tone}".strip()))
    drawn += (text(str(cell), (cell + 0.5) * step - 1, 56, "align-middle cell-number") for cell in range(cells))
    return svg_image("gpu-drawing", 340, 60, label, *drawn)


def start_histogram(counts: Sequence[float], split: int | None = None, label: str = "") -> str:
    """Draw a histogram; bars from `split` on are pale: rarer than the p90."""
    top, drawn = max(counts, default=0) or 1, []
    for i, count in enumerate(counts):
        height = max(1.0, 32 * count / top)
        pale = split is not None and i >= split
        drawn.append(rect("fill soft" if pale else "fill", i * 7, 34 - height, 6, height, 1))
    width = max(len(counts) * 7, 7)
    return (
        f'<svg class="histogram" width="{width}" height="36" viewBox="0 0 {width} 36" role="img" '
        f'aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )


def wait_line(p50: float, p90: float, words: tuple[str, str, str], label: str) -> str:
    """Draw when a queued lease will probably start.

    `p50` and `p90` are shares of the time from now to the end of the axis.
    """
    a, b = f"{100 * p50:.1f}%", f"{100 * p90:.1f}%"
    first, second, end = (escape(word) for word in words)
    return (
        f'<svg class="start-forecast" role="img" aria-label="{escape(label)}">'
        '<rect class="track" y="14" width="100%" height="6" rx="3"/>'
        f'<rect class="fill soft" x="{a}" y="14" width="{max(100 * (p90 - p50), 0):.1f}%" height="6"/>'
        f'<rect class="fill" x="{a}" y="11" width="2" height="12" rx="1"/>'
        f'<rect class="fill" x="{b}" y="11" width="2" height="12" rx="1"/>'
        '<circle class="fill neutral" cx="4" cy="17" r="4"/><g class="chart"><text x="0" y="40">now</text>'
        f'<text x="{a}" y="40" class="align-middle">{first}</text>'
        f'<text x="{b}" y="40" class="align-middle">{second}</text>'
        f'<text x="100%" y="40" class="align-end">{end}</text></g></svg>'
    )


def gpu_ornament(rows: Sequence[Sequence[Sequence[SliceSpan]]], cells: int = 8) -> str:
    """Draw rows of GPUs as the sign-in page's ornament, at most six per row."""
    width, step = 88, 89 / cells
    drawn = "".join(
        rect(span.kind, column * 96 + span.start * step, line * 26, span.size * step - 1, 18, 2)
        for line, row in enumerate(rows)
        for column, gpu in enumerate(row)
        for span in gpu
    )
    view = f"0 0 {5 * 96 + width} {len(rows) * 26 - 7}"
    return f'<svg class="fleet illustration" viewBox="{view}" aria-hidden="true">{drawn}</svg>'


def empty_list_drawing(held: int) -> str:
    """Draw a GPU's eight slices, the last ones taken, for an empty list."""
    drawn = (rect("sold" if c >= 8 - held else "free", c * 18.5, 4, 17, 36, 2) for c in range(8))
    return f'<svg class="illustration fleet" viewBox="0 0 148 44" aria-hidden="true">{"".join(drawn)}</svg>'
