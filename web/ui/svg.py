"""SVG primitives of every drawing.

Widths are attributes, never styles: the CSP allows no styles.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from django.utils.html import escape

PATTERNS = {
    "idle": "pattern-idle",
    "reserved": "pattern-reserved",
    "held": "pattern-reserved",
    "fragmented": "pattern-fragmented",
    "unhealthy": "pattern-unhealthy",
    "maintenance": "pattern-maintenance",
}


class BarPart(NamedTuple):
    """A share of a bar: its CSS class or pattern, and its amount."""

    kind: str
    amount: float


class SliceSpan(NamedTuple):
    """A run of memory slices of one GPU in one state: start, size, kind, label."""

    start: int
    size: int
    kind: str
    label: str = ""


@lru_cache(maxsize=8192)
def format_coordinate(value: float) -> str:
    """Format a coordinate as short as possible."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def fill_attribute(kind: str) -> str:
    """Return the fill attribute of a kind: a pattern or a CSS class.

    A pattern is used where colour is not enough.
    """
    pattern = PATTERNS.get(kind)
    return f'fill="url(#{pattern})"' if pattern else f'class="{escape(kind)}"'


def rect(kind: str, x: float, y: float, width: float, height: float, rx: float = 0) -> str:
    """Draw a rectangle of a kind; with a corner radius if one is given."""
    corner = f' rx="{format_coordinate(rx)}"' if rx else ""
    return (
        f'<rect {fill_attribute(kind)} x="{format_coordinate(x)}" y="{format_coordinate(y)}"'
        f' width="{format_coordinate(width)}" height="{format_coordinate(height)}"{corner}/>'
    )


def text(words: str, x: float, y: float, name: str = "") -> str:
    """Draw a text; its class sets the anchor."""
    return f'<text class="{name}" x="{format_coordinate(x)}" y="{format_coordinate(y)}">{escape(words)}</text>'


def format_points(pairs: Iterable[tuple[float, float]]) -> str:
    """Format the corners of a line."""
    return " ".join(f"{format_coordinate(x)},{format_coordinate(y)}" for x, y in pairs)


def svg_image(name: str, width: float, height: float, label: str, *drawn: str, left: float = 0) -> str:
    """Frame a drawing as one image with an accessible name."""
    view = f"{format_coordinate(left)} 0 {format_coordinate(width)} {format_coordinate(height)}"
    return f'<svg class="{name}" viewBox="{view}" role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'
