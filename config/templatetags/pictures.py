"""Tags that draw: every picture of the portal from plain values, as SVG."""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import template
from django.utils.safestring import SafeString
from django.utils.safestring import mark_safe as safe  # every drawing escapes the words it is given

from billing.domain.money import exponent_of
from config import figures
from config.drawing import charts, fleet, small
from config.drawing.svg import Part, Span, paint

register = template.Library()


@register.simple_tag
def slice_glyph(
    start: int | None = None, size: int = 0, cells: int = 8, kind: str = "u", label: str = ""
) -> SafeString:
    """Draw a lease's slices on their card; kind u held, w coming, z off."""
    return safe(small.glyph(start, size, cells, kind, label))


@register.simple_tag
def quota_bar(
    used: float, total: float, held: float = 0, label: str = "", height: int = 8, kind: str = "fill"
) -> SafeString:
    """Draw a ceiling: used solid, held dotted. The sentence with the figures stands beside it."""
    words = label or f"{used:g} of {total:g} used" + (f", {held:g} held" if held else "")
    return safe(small.bar([Part(kind, used), Part("held", held)], total, height, words))


@register.simple_tag
def ceiling_bar(
    spent: int, forecast: int, taken: int, limit: int, marks: Sequence[int], label: str
) -> SafeString:
    """Draw a budget: spent solid, forecast pale, what else is held dotted, its limit, and marks at shares of it."""
    kind = "fill bad" if spent >= limit else "fill"
    parts = [
        Part(kind, spent),
        Part("fill soft", max(forecast - spent, 0)),
        Part("held", max(taken - max(forecast, spent), 0)),
    ]
    return safe(small.ceiling(parts, limit, marks, label))


@register.simple_tag
def parts_bar(parts: Sequence[Any], label: str, total: float = 0, height: int = 18) -> SafeString:
    """Draw shares of a total side by side; a part is (kind, amount)."""
    shares = [Part(*part) for part in parts]
    return safe(small.bar(shares, total or sum(part.amount for part in shares), height, label))


@register.simple_tag
def legend_key(kind: str) -> SafeString:
    """Draw the square that names a colour or a pattern in a legend."""
    square = f'<rect {paint(kind)} width="12" height="12"/>'
    return safe(f'<svg viewBox="0 0 12 12" aria-hidden="true">{square}</svg>')


@register.simple_tag
def sparkline(
    values: Sequence[float | None], label: str = "", top: float = 100, idle: bool = False
) -> SafeString:
    """Draw the last hour."""
    return safe(small.spark(values, top, label, idle=idle))


@register.simple_tag
def budget_ring(
    spent: float,
    limit: float,
    held: float = 0,
    forecast: float = 0,
    title: str = "",
    note: str = "",
    label: str = "",
) -> SafeString:
    """Draw a budget as a ring, one per page; the title defaults to the share spent."""
    words = title or f"{100 * spent / limit if limit else 0:.0f} %"
    return safe(small.ring(spent, limit, held, forecast, title=words, note=note, label=label))


@register.simple_tag
def card_drawing(spans: Sequence[Any], cells: int = 8, label: str = "Placement on the card") -> SafeString:
    """Draw one card large; a span is (start, size, kind, word), kinds own oth fre k-sold k-spot idle …"""
    return safe(small.card([Span(*span) for span in spans], cells, label))


@register.simple_tag
def start_histogram(counts: Sequence[float], split: int | None = None, label: str = "") -> SafeString:
    """Draw how long starts took."""
    return safe(small.histogram(counts, split, label))


@register.simple_tag
def wait_line(p50: float, p90: float, p50_word: str, p90_word: str, end_word: str, label: str) -> SafeString:
    """Draw when a queued lease likely starts."""
    return safe(small.wait_line(p50, p90, (p50_word, p90_word, end_word), label))


@register.simple_tag
def bar_chart(
    columns: Sequence[dict[str, Any]],
    series: Sequence[str],
    currency: str,
    label: str,
    now_at: float | Decimal | None = None,
) -> SafeString:
    """Draw amounts of money (minor units) per day, stacked by series of classes f1 … f6."""
    days = [charts.Column(**column) for column in columns]
    return safe(
        charts.stacked_bars(
            days, series, axis(currency), label=label, now_at=None if now_at is None else float(now_at)
        )
    )


@register.simple_tag
def hours_chart(
    columns: Sequence[dict[str, Any]], series: Sequence[str], label: str, now_at: float | None = None
) -> SafeString:
    """Draw seconds per day as hours, stacked by series of classes or patterns."""
    days = [
        charts.Column(each["label"], tuple(seconds / 3600 for seconds in each["amounts"])) for each in columns
    ]
    return safe(charts.stacked_bars(days, series, lambda hours: f"{hours:g} h", label=label, now_at=now_at))


@register.simple_tag
def budget_chart(track: dict[str, Any], currency: str, label: str) -> SafeString:
    """Draw the month's running total (minor units) against its limit."""
    return safe(charts.against_limit(charts.Track(**track), axis(currency), label=label))


def axis(currency: str) -> charts.Write:
    """Return what writes an axis value: whole units, thousands as k."""
    unit = 10 ** exponent_of(currency)

    def write(minor: float) -> str:
        whole = minor / unit
        return figures.symbol(currency) + (f"{whole / 1000:g}k" if whole >= 1000 else f"{whole:g}")

    return write


@register.simple_tag
def fleet_map(blocks: Sequence[dict[str, Any]], label: str) -> SafeString:
    """Draw the whole fleet from plain rows; above 160 cards the dense form."""
    return safe(fleet.fleet_map([block_of(block) for block in blocks], label))


def block_of(block: dict[str, Any]) -> fleet.Block:
    """Read a cluster from plain values: the floors below cannot name this file's classes."""
    rows = tuple(
        fleet.Row(row["name"], tuple(map(card_of, row["cards"])), row.get("url", ""), row.get("words", ""))
        for row in block["rows"]
    )
    return fleet.Block(block["name"], block.get("note", ""), rows)


def card_of(card: dict[str, Any]) -> fleet.Card:
    """Read a card; its spans are (start, size, kind)."""
    return fleet.Card(**{**card, "spans": spans_of(tuple(card["spans"]))})


@lru_cache(maxsize=4096)
def spans_of(spans: tuple[tuple[int, int, str], ...]) -> tuple[Span, ...]:
    return tuple(Span(*span) for span in spans)


@register.simple_tag
def promise_art(rows: Sequence[Sequence[Sequence[Any]]]) -> SafeString:
    """Draw real cards of the fleet as an ornament: rows of cards, each a list of (start, size, kind)."""
    return safe(small.cards([[[Span(*span) for span in card] for card in row] for row in rows]))


@register.simple_tag
def empty_art(held: int = 4) -> SafeString:
    """Draw a card with some of its eight slices taken: the picture of an empty list."""
    return safe(small.eight(int(held)))
