"""The fleet map: cluster, node (row), card (column), slice at its true start. Large, then dense.

Large cards (up to 160) are links with a rectangle per slice; dense ones share one path per state and node,
where height carries the meaning as well as colour, so that a thousand cards stay small and quick.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import escape

from config.drawing.svg import Span, number, rect, text

LARGE_UP_TO = 160
NAMED = 4  # of dense rows only every fourth is named, or names would touch
OUTLINE = "fleet-outline"  # drawn once and used by every dense card: a thousand of them must stay small
NAMES = 64  # the room left of the first card for a node's name
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
    ill: bool = False  # something is wrong with it, whatever its slices do


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
    """Draw a column per cluster, cards of 26 × 11, one path per state and node."""
    drawn: list[str] = [f'<defs><rect id="{OUTLINE}" width="28" height="13" rx="1"/></defs>']
    left, deepest, stop = 0.0, 0.0, True
    for block in blocks:
        drawn.append(text(block.name, left, 12, "cl"))
        drawn.append(text(block.note, left + 10 + 7 * len(block.name), 12))
        y = 34.0
        for place, row in enumerate(block.rows):
            name = text(row.name, left, y + 10) if place % NAMED == 0 else ""
            drawn.append(f"<g>{name}{dense_row(row, left + 30, y)}")
            for i, card in enumerate(row.cards):
                outline = f'<use href="#{OUTLINE}" x="{number(left + 29 + 29 * i)}" y="{number(y - 1)}"/>'
                drawn.append(link(card, outline, stop=stop, told=False))
                stop = False
            drawn.append("</g>")
            y += 15
        deepest = max(deepest, y)
        left += 30 + 29 * block.widest + 22
    return frame(left - 18, deepest + 4, label, drawn)


def dense_row(row: Row, left: float, y: float) -> str:
    """Draw the cards of a node: all free first, then a path for each state that occurs."""
    paths = {"free": [f"M{number(left + 29 * i)} {number(y)}h26v11h-26z" for i in range(len(row.cards))]}
    for i, card in enumerate(row.cards):
        step = 26 / card.cells
        for span in card.spans:
            if span.kind == "free":
                continue
            down, tall = HEIGHTS.get(span.kind, (0, 11))
            width = number(span.size * step - (0.6 if span.size < card.cells else 0))
            start = f"M{number(left + 29 * i + span.start * step)} {number(y + down)}"
            paths.setdefault(span.kind, []).append(f"{start}h{width}v{tall}h-{width}z")
    return "".join(f'<path class="w-{kind}" d="{"".join(moves)}"/>' for kind, moves in paths.items())


def link(card: Card, drawn: str, *, stop: bool, told: bool = True) -> str:
    """Wrap a card's drawing in its link; `stop` makes it the map's one tab stop, `told` adds its words on hover."""
    current = ' aria-current="true"' if card.current else ""
    words = escape(card.words)
    ill = ' class="ill"' if card.ill else ""
    where = f'href="{escape(card.url)}" tabindex="{0 if stop else -1}"'
    title = f"<title>{words}</title>" if told else ""
    return f'<a {where}{ill}{current} aria-label="{words}">{title}{drawn}</a>'


def frame(width: float, height: float, label: str, drawn: Sequence[str]) -> str:
    """Frame the map as a group of links."""
    view = f"-3 0 {number(width + 3)} {number(height)}"
    words = f'role="group" aria-label="{escape(label)}"'
    return (
        f'<svg class="fleet map" width="{number(width + 3)}" viewBox="{view}" {words}>{"".join(drawn)}</svg>'
    )
