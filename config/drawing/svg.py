"""The few elements of every drawing. Widths are attributes, never styles: the CSP allows no styles."""

from collections.abc import Iterable
from functools import lru_cache
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
    """A share of a bar: the class (or pattern) that says what it is, and how much of it there is."""

    kind: str
    amount: float


class Span(NamedTuple):
    """Memory slices of one card in one state: where they start, how many, and a word to write on them."""

    start: int
    size: int
    kind: str
    label: str = ""


@lru_cache(maxsize=8192)
def number(value: float) -> str:
    """Write a coordinate as short as it can be."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def paint(kind: str) -> str:
    """Return the attribute that fills a shape: a pattern where colour alone would not do, else a class."""
    pattern = PATTERNS.get(kind)
    return f'fill="url(#{pattern})"' if pattern else f'class="{escape(kind)}"'


def rect(kind: str, x: float, y: float, width: float, height: float, rx: float = 0) -> str:
    """Draw a rectangle of a kind; a corner radius only where there is one."""
    corner = f' rx="{number(rx)}"' if rx else ""
    return (
        f'<rect {paint(kind)} x="{number(x)}" y="{number(y)}" width="{number(width)}" '
        f'height="{number(height)}"{corner}/>'
    )


def text(words: str, x: float, y: float, name: str = "") -> str:
    """Write a word; its class decides where it is anchored."""
    return f'<text class="{name}" x="{number(x)}" y="{number(y)}">{escape(words)}</text>'


def points(pairs: Iterable[tuple[float, float]]) -> str:
    """Write the corners of a line."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in pairs)


def picture(name: str, width: float, height: float, label: str, *drawn: str, left: float = 0) -> str:
    """Frame a drawing that reads as one picture, with its words for those who cannot see it."""
    view = f"{number(left)} 0 {number(width)} {number(height)}"
    return (
        f'<svg class="{name}" viewBox="{view}" role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )
