"""The fleet map: cluster, node (row), card (column), slice at its true start. Up to 160 cards large, then dense.

Large cards are links with a rectangle per slice; dense ones are one path per state and node, where height
carries the meaning as well as colour, so that a thousand cards stay small and quick.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import escape

from config.drawings import Span, number, paint

LARGE_UP_TO = 160
NAMES = 62  # the room left of the first card for a node's name
# dense cards: where a state starts and how tall it is, in elevenths of a card
HEIGHTS = {"idle": (6, 5), "res": (0, 4), "frag": (8, 3), "off": (4, 3)}


@dataclass(frozen=True)
class Card:
    """One card: where it leads, what a screen reader hears, how many cells it has and what is in them."""

    url: str
    words: str
    spans: tuple[Span, ...]
    cells: int = 8
    current: bool = False


@dataclass(frozen=True)
class Row:
    """One node and its cards in order."""

    name: str
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Block:
    """One cluster: its name, a note beside it, and its nodes."""

    name: str
    note: str
    rows: tuple[Row, ...]


def fleet_map(blocks: Sequence[Block], label: str) -> str:
    """Draw the whole fleet in the size that suits the number of cards."""
    count = sum(len(row.cards) for block in blocks for row in block.rows)
    return large(blocks, label) if count <= LARGE_UP_TO else dense(blocks, label)


def large(blocks: Sequence[Block], label: str) -> str:
    """Draw every card as a link of 82 × 22 with a rectangle per slice."""
    columns = max((len(row.cards) for block in blocks for row in block.rows), default=0)
    drawn: list[str] = []
    top, first = 12, True
    for block in blocks:
        drawn.append(f'<text class="cl" x="0" y="{top}">{escape(block.name)}</text>')
        drawn.append(
            f'<text x="{NAMES + 2 + max(0, len(block.name) - 8) * 7}" y="{top}">{escape(block.note)}</text>'
        )
        widest = max((len(row.cards) for row in block.rows), default=0)
        drawn += [
            f'<text x="{NAMES + 43 + 87 * i}" y="{top + 20}" text-anchor="middle">card {i}</text>'
            for i in range(widest)
        ]
        y = top + 27
        for row in block.rows:
            drawn.append(f'<g><text x="0" y="{y + 15}">{escape(row.name)}</text>')
            for i, card in enumerate(row.cards):
                drawn.append(_large_card(card, NAMES + 2 + 87 * i, y, tab=0 if first else -1))
                first = False
            drawn.append("</g>")
            y += 30
        top = y + 17
    width = NAMES + 2 + 87 * max(columns, 1)
    return (
        f'<svg class="fleet" viewBox="-3 0 {width + 3} {max(top - 12, 40)}" role="group" aria-label="{escape(label)}">'
        f"{''.join(drawn)}</svg>"
    )


def _large_card(card: Card, x: float, y: float, tab: int) -> str:
    step = 83 / card.cells
    slices = "".join(
        f'<rect {paint(s.kind)} x="{number(x + s.start * step)}" y="{number(y)}" width="{number(s.size * step - 1)}" '
        f'height="22" rx="1.5"/>'
        for s in card.spans
    )
    current = ' aria-current="true"' if card.current else ""
    return (
        f'<a href="{escape(card.url)}" tabindex="{tab}"{current} aria-label="{escape(card.words)}">'
        f"<title>{escape(card.words)}</title>{slices}"
        f'<rect class="hit" x="{number(x - 2)}" y="{number(y - 2)}" width="86" height="26" rx="3"/></a>'
    )


def dense(blocks: Sequence[Block], label: str) -> str:
    """Draw a column per cluster, cards of 26 × 11, one path per state and node."""
    drawn: list[str] = []
    left, deepest, first = 0.0, 0.0, True
    for block in blocks:
        widest = max((len(row.cards) for row in block.rows), default=1)
        drawn.append(f'<text class="cl" x="{number(left)}" y="12">{escape(block.name)}</text>')
        drawn.append(
            f'<text x="{number(left + 10 + 7 * len(block.name))}" y="12">{escape(block.note)}</text>'
        )
        y = 34.0
        for row in block.rows:
            drawn.append(f'<g><text x="{number(left)}" y="{number(y + 10)}">{escape(row.name)}</text>')
            drawn.append(_dense_row(row, left + 30, y))
            for i, card in enumerate(row.cards):
                drawn.append(_dense_link(card, left + 30 + 29 * i, y, tab=0 if first else -1))
                first = False
            drawn.append("</g>")
            y += 15
        deepest = max(deepest, y)
        left += 30 + 29 * widest + 22
    return (
        f'<svg class="fleet" viewBox="-3 0 {number(left)} {number(deepest + 4)}" role="group" '
        f'aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    )


def _dense_row(row: Row, left: float, y: float) -> str:
    paths: dict[str, list[str]] = {
        "free": [f"M{number(left + 29 * i)} {number(y)}h26v11h-26z" for i in range(len(row.cards))]
    }
    for i, card in enumerate(row.cards):
        step = 26 / card.cells
        for span in card.spans:
            if span.kind == "free":
                continue
            down, tall = HEIGHTS.get(span.kind, (0, 11))
            width = number(span.size * step - (0.6 if span.size < card.cells else 0))
            paths.setdefault(span.kind, []).append(
                f"M{number(left + 29 * i + span.start * step)} {number(y + down)}h{width}v{tall}h-{width}z"
            )
    return "".join(f'<path class="w-{kind}" d="{"".join(d)}"/>' for kind, d in paths.items())


def _dense_link(card: Card, x: float, y: float, tab: int) -> str:
    current = ' aria-current="true"' if card.current else ""
    return (
        f'<a href="{escape(card.url)}" tabindex="{tab}"{current} aria-label="{escape(card.words)}">'
        f'<rect class="hit" x="{number(x - 1)}" y="{number(y - 1)}" width="28" height="13" rx="1"/></a>'
    )
