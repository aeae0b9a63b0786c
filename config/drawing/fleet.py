"""The fleet map: cluster, node (row), card (column), slice at its true start. Large, then dense.

Large cards (up to 160) are links with a rectangle per slice. Dense ones share one line per state and node, where
height carries the meaning as well as colour; the node is the link, and fleet.js makes one of each card: so a thousand
cards stay below 100 kB.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.utils.html import escape

from config.drawing.svg import Span, number, rect, text

LARGE_UP_TO = 160
NAMED = 4  # of dense rows only every fourth is named, or names would touch
NAMES = 64  # the room left of the first card for a node's name
# dense cards: the middle of a state's line and its width, in elevenths of a card; the style sheet has the whole card
WHOLE = "5.5"
LINES = {"idle": ("8.5", 5), "res": ("2", 4), "frag": ("9.5", 3), "off": (WHOLE, 3)}


@dataclass(frozen=True)
class Card:
    """One card: where it leads, what a screen reader hears, how many cells it has and what is in them.

    A dense map tells only `told`, units sold of all: `3/8` or `0/8, unhealthy`; fleet.js makes the words of it.
    """

    url: str
    words: str
    spans: tuple[Span, ...]
    cells: int = 8
    current: bool = False
    ill: bool = False  # something is wrong with it, whatever its slices do
    told: str = ""
    index: int = 0


@dataclass(frozen=True)
class Row:
    """One node and its cards in order; a dense map leads to the node and speaks its `words`."""

    name: str
    cards: tuple[Card, ...]
    url: str = ""
    words: str = ""


@dataclass(frozen=True)
class Block:
    """One cluster: its name, a note beside it, and its nodes."""

    name: str
    note: str
    rows: tuple[Row, ...]

    @property
    def widest(self) -> int:
        """Return the number of cards of the node that has most."""
        return max((len(row.cards) for row in self.rows), default=1)


def fleet_map(blocks: Sequence[Block], label: str) -> str:
    """Draw the whole fleet in the size that suits the number of cards."""
    count = sum(len(row.cards) for block in blocks for row in block.rows)
    return large(blocks, label) if count <= LARGE_UP_TO else dense(blocks, label)


def large(blocks: Sequence[Block], label: str) -> str:
    """Draw every card as a link of 82 × 22 with a rectangle per slice; the first is the one tab stop."""
    drawn: list[str] = []
    top, stop = 12, True
    for block in blocks:
        drawn.append(text(block.name, 0, top, "cl"))
        drawn.append(text(block.note, NAMES + max(0, len(block.name) - 8) * 7, top))
        drawn += (text(f"card {i}", NAMES + 41 + 87 * i, top + 20, "midt") for i in range(block.widest))
        top += 27
        for row in block.rows:
            drawn.append(f"<g>{text(row.name, 0, top + 15)}")
            for i, card in enumerate(row.cards):
                drawn.append(large_card(card, NAMES + 87 * i, top, stop=stop))
                stop = False
            drawn.append("</g>")
            top += 30
        top += 17
    width = NAMES + 87 * max((block.widest for block in blocks), default=1)
    return frame(width, max(top - 22, 40), label, drawn)


def large_card(card: Card, x: float, y: float, *, stop: bool) -> str:
    """Draw one large card and the outline that shows on hover."""
    step = 83 / card.cells
    slices = (rect(s.kind, x + s.start * step, y, s.size * step - 1, 22, 1.5) for s in card.spans)
    return link(card, "".join(slices) + rect("hit", x - 2, y - 2, 86, 26, 3), stop=stop)


def dense(blocks: Sequence[Block], label: str) -> str:
    """Draw a column per cluster, cards of 26 × 11, one line per state and node."""
    drawn: list[str] = []
    left, deepest = 0.0, 0.0
    for block in blocks:
        drawn.append(text(block.name, left, 12, "cl"))
        drawn.append(text(block.note, left + 10 + 7 * len(block.name), 12))
        for place, row in enumerate(block.rows):
            where = f'transform="translate({number(left + 30)} {34 + 15 * place})"'
            name = text(row.name, -30, 10) if place % NAMED == 0 else ""
            drawn.append(f"<a {dense_words(row)} {where}>{name}{dense_row(row)}</a>")
        deepest = max(deepest, 34.0 + 15 * len(block.rows))
        left += 30 + 29 * block.widest + 22
    return frame(left - 18, deepest + 4, label, drawn)


def dense_words(row: Row) -> str:
    """Say where a node leads, and of each card its number and what is on it; fleet.js reads it."""
    cards = ";".join(f"{card.index}:{card.told}" for card in row.cards)
    return (
        f'href="{escape(row.url)}" aria-label="{escape(row.words or row.name)}" data-cards="{escape(cards)}"'
    )


def dense_row(row: Row) -> str:
    """Draw the cards of a node."""
    return dense_cards(tuple((card.cells, card.spans, card.current, card.ill) for card in row.cards))


# A map is asked for every few seconds, and from one to the next few of its nodes look different.
@lru_cache(maxsize=4096)
def dense_cards(cards: tuple[tuple[int, tuple[Span, ...], bool, bool], ...]) -> str:
    """Draw cards (cells, spans, current, ill): all free first, a line for each state, then what stands out."""
    lines: dict[str, list[tuple[int, int]]] = {"free": [(290 * i, 290 * i + 260) for i in range(len(cards))]}
    for i, (cells, spans, _, _) in enumerate(cards):
        step = 260 / cells
        for span in spans:
            if span.kind != "free":
                end = (span.start + span.size) * step - (6 if span.size < cells else 0)
                lines.setdefault(span.kind, []).append(
                    (290 * i + round(span.start * step), 290 * i + round(end))
                )
    marks = (
        f'<rect class="hit {"on" if current else "ill"}" x="{29 * i - 1}" y="-1" width="28" height="13"/>'
        for i, (_, _, current, ill) in enumerate(cards)
        if current or ill
    )
    return "".join([*(dense_line(kind, runs) for kind, runs in lines.items()), *marks])


def dense_line(kind: str, spans: Sequence[tuple[int, int]]) -> str:
    """Draw all of one state on a node; spans are in tenths, each told from where the last one ended."""
    middle, wide = LINES.get(kind, (WHOLE, 0))
    moves, at = "", 0
    for start, end in spans:
        moves += f"m{number((start - at) / 10)} 0" if moves else f"M{number(start / 10)} {middle}"
        moves, at = f"{moves}h{number((end - start) / 10)}", end
    width = f' stroke-width="{wide}"' if wide else ""
    return f'<path class="w-{escape(kind)}"{width} d="{moves}"/>'


def link(card: Card, drawn: str, *, stop: bool) -> str:
    """Wrap a card's drawing in its link; `stop` makes it the map's one tab stop."""
    current = ' aria-current="true"' if card.current else ""
    words = escape(card.words)
    ill = ' class="ill"' if card.ill else ""
    where = f'href="{escape(card.url)}" tabindex="{0 if stop else -1}"'
    return f'<a {where}{ill}{current} aria-label="{words}"><title>{words}</title>{drawn}</a>'


def frame(width: float, height: float, label: str, drawn: Sequence[str]) -> str:
    """Frame the map as a group of links."""
    view = f"-3 0 {number(width + 3)} {number(height)}"
    words = f'role="group" aria-label="{escape(label)}"'
    return (
        f'<svg class="fleet map" width="{number(width + 3)}" viewBox="{view}" {words}>{"".join(drawn)}</svg>'
    )
