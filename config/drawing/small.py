"""Small pictures drawn on the server: they need no script, print, and stay sharp."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from django.utils.html import escape

from config.drawing.svg import Part, Span, number, paint, picture, points, rect, text

AROUND = 376.99  # the ring's circumference at radius 60


@lru_cache(maxsize=2048)
def glyph(start: int | None, size: int, cells: int = 8, kind: str = "u", label: str = "") -> str:
    """Draw a card's memory slices with the lease's own at their true place; start None means none held."""
    step = 46 / cells
    own = range(0) if start is None else range(start, start + size)
    drawn = (rect(kind if c in own else "c", c * step, 0, step - 1, 14, 1) for c in range(cells))
    where = f"memory slices {own.start} to {own.stop - 1} of {cells}" if own else "no slice held"
    return picture("glyph", 46, 14, f"{label}: {where}" if label else where, *drawn)


def bar(parts: Sequence[Part], total: float, height: int = 8, label: str = "", gap: float = 0.15) -> str:
    """Draw shares of a total side by side, each as wide as its amount."""
    drawn, at = [f'<rect class="track" width="100%" height="{height}"/>'], 0.0
    for part in parts:
        width = min(100 * part.amount / total, 100 - at) if total else 0.0
        if width <= 0:
            continue
        seen = max(width - gap, 0.05)
        drawn.append(f'<rect {paint(part.kind)} x="{at:.2f}%" width="{seen:.2f}%" height="{height}"/>')
        at += width
    name = "meter tall" if height > 12 else "meter"
    words = escape(label)
    return f'<svg class="{name}" height="{height}" role="img" aria-label="{words}">{"".join(drawn)}</svg>'


def ceiling(parts: Sequence[Part], limit: float, marks: Iterable[int], label: str) -> str:
    """Draw a budget as a bar: what is taken side by side, its limit in ink, and a short mark at each share of it.

    What is taken may be more than the limit: then the limit moves to the left, as far as two thirds of the width.
    """
    taken = sum(part.amount for part in parts)
    total = min(max(limit, taken), limit * 1.5 or taken) * 1.005 or 1
    drawn, at = ['<rect class="track" y="4" width="100%" height="8" rx="2"/>'], 0.0
    for part in parts:
        width = min(100 * part.amount / total, 100 - at)
        if width > 0:
            seen = max(width - 0.15, 0.05)
            drawn.append(f'<rect {paint(part.kind)} x="{at:.2f}%" y="4" width="{seen:.2f}%" height="8"/>')
        at += width
    for percent in marks:
        x = percent * limit / total
        if percent != 100 and 0 < x < 100:
            drawn.append(f'<rect class="mk" x="{x:.2f}%" y="1" width="1" height="14"/>')
    drawn.append(f'<rect class="lim" x="{100 * limit / total:.2f}%" y="0" width="2" height="16"/>')
    words = escape(label)
    return f'<svg class="ceiling" height="16" role="img" aria-label="{words}">{"".join(drawn)}</svg>'


def spark(values: Sequence[float | None], top: float = 100, label: str = "", *, idle: bool = False) -> str:
    """Draw the last hour as a line; a missing sample is a gap, not a zero."""
    step = 112 / max(len(values) - 1, 1)
    places = [None if v is None else (i * step, 24 - 22 * min(v, top) / top) for i, v in enumerate(values)]
    drawn = ['<path class="base" d="M0 25h112"/>']
    for run in runs(places):
        ends = ((run[0][0], 25.0), (run[-1][0], 25.0))
        drawn.append(f'<polygon class="a" points="{points([ends[0], *run, ends[1]])}"/>')
        drawn.append(f'<polyline class="l" points="{points(run)}"/>')
    last = places[-1] if places else None
    if last:
        drawn.append(f'<circle class="e" cx="{number(last[0])}" cy="{number(last[1])}" r="2.2"/>')
    return picture("spark idle" if idle else "spark", 112, 26, label, *drawn)


def runs(places: Iterable[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Split a series at its gaps."""
    found: list[list[tuple[float, float]]] = [[]]
    for place in places:
        if place is None:
            found.append([])
        else:
            found[-1].append(place)
    return [run for run in found if run]


def ring(
    spent: float, limit: float, held: float = 0, forecast: float = 0, *, title: str, note: str, label: str
) -> str:
    """Draw a budget: spent solid, held violet, the forecast pale behind them."""
    whole = limit or 1
    s, h, f = (min(value / whole, 1.0) for value in (spent, spent + held, forecast))
    return picture(
        "ring",
        132,
        132,
        label or f"{title} spent, {note}",
        '<g transform="rotate(-90 66 66)"><circle class="t" cx="66" cy="66" r="60"/>',
        *(arc("f", h, f), arc("v", 0.0, s), arc("h", s, h)),
        "</g>",
        text(title, 66, 70),
        text(note, 66, 88, "u"),
    )


def arc(name: str, start: float, end: float) -> str:
    """Draw a share of the ring, or nothing when it has no length."""
    length = (end - start) * AROUND
    if length <= 0:
        return ""
    dashes = f'stroke-dasharray="{length:.2f} {AROUND}" stroke-dashoffset="{-start * AROUND:.2f}"'
    return f'<circle class="{name}" cx="66" cy="66" r="60" {dashes}/>'


def card(spans: Sequence[Span], cells: int = 8, label: str = "Placement on the card") -> str:
    """Draw one card large, with the words of its slices and the numbers of its cells below."""
    step = 340 / cells
    drawn = []
    for span in spans:
        x, width = span.start * step, span.size * step - 2
        drawn.append(rect(span.kind, x, 0, width, 40, 3))
        if span.label:
            tone = "on" if span.kind in {"own", "k-sold"} else ""
            drawn.append(text(span.label, x + width / 2, 24, f"midt {tone}".strip()))
    drawn += (text(str(cell), (cell + 0.5) * step - 1, 56, "midt ax") for cell in range(cells))
    return picture("cardbig", 340, 60, label, *drawn)


def histogram(counts: Sequence[float], split: int | None = None, label: str = "") -> str:
    """Draw a distribution; bars from `split` on are pale: rarer than the p90."""
    top, drawn = max(counts, default=0) or 1, []
    for i, count in enumerate(counts):
        height = max(1.0, 32 * count / top)
        pale = split is not None and i >= split
        drawn.append(rect("fill soft" if pale else "fill", i * 7, 34 - height, 6, height, 1))
    width = max(len(counts) * 7, 7)
    return (
        f'<svg class="hist" width="{width}" height="36" viewBox="0 0 {width} 36" role="img" '
        f'aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )


def wait_line(p50: float, p90: float, words: tuple[str, str, str], label: str) -> str:
    """Draw when a queued lease likely starts: shares of the span from now to the end of the axis."""
    a, b = f"{100 * p50:.1f}%", f"{100 * p90:.1f}%"
    first, second, end = (escape(word) for word in words)
    return (
        f'<svg class="wait-line" role="img" aria-label="{escape(label)}">'
        '<rect class="track" y="14" width="100%" height="6" rx="3"/>'
        f'<rect class="fill soft" x="{a}" y="14" width="{max(100 * (p90 - p50), 0):.1f}%" height="6"/>'
        f'<rect class="fill" x="{a}" y="11" width="2" height="12" rx="1"/>'
        f'<rect class="fill" x="{b}" y="11" width="2" height="12" rx="1"/>'
        '<circle class="fill ink" cx="4" cy="17" r="4"/><g class="chart"><text x="0" y="40">now</text>'
        f'<text x="{a}" y="40" class="midt">{first}</text><text x="{b}" y="40" class="midt">{second}</text>'
        f'<text x="100%" y="40" class="end">{end}</text></g></svg>'
    )


def cards(rows: Sequence[Sequence[Sequence[Span]]], cells: int = 8) -> str:
    """Draw rows of cards without names, as the ornament of the sign-in page: six cards a row at most."""
    width, step = 88, 89 / cells
    drawn = "".join(
        rect(span.kind, column * 96 + span.start * step, line * 26, span.size * step - 1, 18, 2)
        for line, row in enumerate(rows)
        for column, card in enumerate(row)
        for span in card
    )
    view = f"0 0 {5 * 96 + width} {len(rows) * 26 - 7}"
    return f'<svg class="fleet art" viewBox="{view}" aria-hidden="true">{drawn}</svg>'


def eight(held: int) -> str:
    """Draw a card's eight slices, the last ones taken, as the picture of an empty list."""
    drawn = (rect("sold" if c >= 8 - held else "free", c * 18.5, 4, 17, 36, 2) for c in range(8))
    return f'<svg class="art fleet" viewBox="0 0 148 44" aria-hidden="true">{"".join(drawn)}</svg>'
