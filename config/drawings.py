"""Small pictures drawn on the server as SVG: they need no script, print, and pass a strict CSP.

Widths are SVG attributes, never styles. Every function returns markup whose text is already escaped.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.utils.html import escape

PATTERNS = {
    "idle": "p-idle",
    "res": "p-res",
    "held": "p-res",
    "frag": "p-frag",
    "bad": "p-bad",
    "off": "p-off",
}


class Part(NamedTuple):
    """A share of a bar: how much, and the class (or pattern) that says what it is."""

    kind: str
    amount: float
    label: str = ""


class Span(NamedTuple):
    """Memory slices of one card in one state: where they start, how many, and whose they are."""

    start: int
    size: int
    kind: str
    label: str = ""


def paint(kind: str) -> str:
    """Return the attribute that fills a shape: a pattern where colour alone would not do, else a class."""
    pattern = PATTERNS.get(kind)
    return f'fill="url(#{pattern})"' if pattern else f'class="{escape(kind)}"'


def number(value: float) -> str:
    """Write a coordinate as short as it can be."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def glyph(start: int | None, size: int, cells: int = 8, kind: str = "u", label: str = "") -> str:
    """Draw a card's memory slices with the lease's own at their true place; start None means none held."""
    step = 46 / cells
    width = number(step - 1)
    own = range(0) if start is None else range(start, start + size)
    drawn = "".join(
        f'<rect class="{kind if cell in own else "c"}" x="{number(cell * step)}" width="{width}" height="14" rx="1"/>'
        for cell in range(cells)
    )
    where = f"memory slices {own.start} to {own.stop - 1} of {cells}" if own else "no slice held"
    words = escape(f"{label}: {where}" if label else where)
    return f'<svg class="glyph" viewBox="0 0 46 14" role="img" aria-label="{words}">{drawn}</svg>'


def bar(parts: Sequence[Part], total: float, height: int = 8, label: str = "", gap: float = 0.15) -> str:
    """Draw shares of a total side by side, each as wide as its amount."""
    drawn, at = [f'<rect class="track" width="100%" height="{height}"/>'], 0.0
    for part in parts:
        width = 100 * part.amount / total if total else 0.0
        width = min(width, 100 - at)
        if width <= 0:
            continue
        visible = max(width - gap, 0.05)
        drawn.append(f'<rect {paint(part.kind)} x="{at:.2f}%" width="{visible:.2f}%" height="{height}"/>')
        at += width
    tall = " tall" if height > 12 else ""
    return (
        f'<svg class="meter{tall}" height="{height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(drawn)}</svg>"
    )


def spark(values: Sequence[float | None], top: float = 100, label: str = "", *, idle: bool = False) -> str:
    """Draw the last hour as a line; a missing sample is a gap, not a zero."""
    step = 112 / max(len(values) - 1, 1)
    points = [
        None if value is None else (round(i * step, 1), round(24 - 22 * min(value, top) / top, 1))
        for i, value in enumerate(values)
    ]
    drawn = ['<path class="base" d="M0 25h112"/>']
    for run in runs(points):
        line = " ".join(f"{number(x)},{number(y)}" for x, y in run)
        drawn.append(f'<polygon class="a" points="{number(run[0][0])},25 {line} {number(run[-1][0])},25"/>')
        drawn.append(f'<polyline class="l" points="{line}"/>')
    if points and points[-1]:
        drawn.append(f'<circle class="e" cx="{number(points[-1][0])}" cy="{number(points[-1][1])}" r="2.2"/>')
    name = "spark idle" if idle else "spark"
    return f'<svg class="{name}" viewBox="0 0 112 26" role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'


def runs(points: Iterable[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Split a series at its gaps."""
    found: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            found.append([])
        else:
            found[-1].append(point)
    return [run for run in found if run]


def ring(spent: float, limit: float, held: float = 0, forecast: float = 0, *, title: str, note: str) -> str:
    """Draw a budget: spent solid, held violet, the forecast pale behind both."""
    around = 376.99

    def arc(name: str, from_share: float, to_share: float) -> str:
        length = max(0.0, min(to_share, 1.0) - from_share) * around
        if length <= 0:
            return ""
        return (
            f'<circle class="{name}" cx="66" cy="66" r="60" stroke-dasharray="{length:.2f} {around}" '
            f'stroke-dashoffset="{-from_share * around:.2f}"/>'
        )

    whole = limit or 1
    s, h, f = spent / whole, (spent + held) / whole, forecast / whole
    arcs = arc("f", min(h, 1.0), f) + arc("v", 0.0, s) + arc("h", min(s, 1.0), h)
    return (
        f'<svg class="ring" viewBox="0 0 132 132" role="img" aria-label="{escape(f"{title} spent, {note}")}">'
        f'<g transform="rotate(-90 66 66)"><circle class="t" cx="66" cy="66" r="60"/>{arcs}</g>'
        f'<text x="66" y="70">{escape(title)}</text><text class="u" x="66" y="88">{escape(note)}</text></svg>'
    )


def card(spans: Sequence[Span], cells: int = 8, label: str = "Placement on the card") -> str:
    """Draw one card large, with the words of its slices and the numbers of its cells below."""
    step = 340 / cells
    drawn = []
    for span in spans:
        x, width = span.start * step, span.size * step - 2
        drawn.append(f'<rect {paint(span.kind)} x="{number(x)}" width="{number(width)}" height="40" rx="3"/>')
        if span.label:
            tone = "on" if span.kind in {"own", "k-sold", "k-spot"} else ""
            drawn.append(
                f'<text class="{tone}" x="{number(x + width / 2)}" y="24" text-anchor="middle">'
                f"{escape(span.label)}</text>"
            )
    for cell in range(cells):
        drawn.append(
            f'<text class="ax" x="{number((cell + 0.5) * step - 1)}" y="56" text-anchor="middle">{cell}</text>'
        )
    return f'<svg class="cardbig" viewBox="0 0 340 60" role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'


def histogram(counts: Sequence[float], split: int | None = None, label: str = "") -> str:
    """Draw a distribution; bars from `split` on are pale: rarer than the p90."""
    top = max(counts, default=0) or 1
    drawn = []
    for i, count in enumerate(counts):
        height = max(1.0, round(32 * count / top, 1))
        tone = "fill soft" if split is not None and i >= split else "fill"
        drawn.append(
            f'<rect class="{tone}" x="{i * 7}" y="{number(34 - height)}" width="6" height="{number(height)}" rx="1"/>'
        )
    width = max(len(counts) * 7, 7)
    return (
        f'<svg class="hist" width="{width}" height="36" viewBox="0 0 {width} 36" role="img" '
        f'aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )


def wait_line(p50: float, p90: float, words: tuple[str, str, str], label: str) -> str:
    """Draw when a queued lease likely starts: shares of the span from now to the end of the axis."""
    a, b = 100 * p50, 100 * p90
    first, second, end = (escape(word) for word in words)
    return (
        f'<svg class="wait-line" role="img" aria-label="{escape(label)}">'
        '<rect class="track" x="0" y="14" width="100%" height="6" rx="3"/>'
        f'<rect class="fill soft" x="{a:.1f}%" y="14" width="{max(b - a, 0):.1f}%" height="6"/>'
        f'<rect class="fill" x="{a:.1f}%" y="11" width="2" height="12" rx="1"/>'
        f'<rect class="fill" x="{b:.1f}%" y="11" width="2" height="12" rx="1"/>'
        '<circle class="fill ink" cx="4" cy="17" r="4"/><g class="chart"><text x="0" y="40">now</text>'
        f'<text x="{a:.1f}%" y="40" class="midt">{first}</text><text x="{b:.1f}%" y="40" class="midt">{second}</text>'
        f'<text x="100%" y="40" class="end">{end}</text></g></svg>'
    )
