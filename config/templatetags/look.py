"""Tags for what appears in every row: plain functions, because a hundred rows must render in a few ms.

They are builtins, so no template loads them. Parts that wrap other markup are components (`<c-…>`).
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django import template
from django.template.context import Context
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from config import figures, shapes
from config.drawing import charts, fleet, small
from config.drawing.svg import Part, Span, paint

register = template.Library()


def safe(markup: str) -> SafeString:
    """Mark as HTML what this file built from escaped parts only."""
    return mark_safe(markup)


@cache
def sprite() -> str:
    return static("icons.svg")


def symbol(name: str, classes: str, side: int) -> str:
    """Refer to one symbol of the sprite; the words beside it give it its name."""
    use = f'<use href="{sprite()}#{escape(name)}"/>'
    return f'<svg class="{classes}" viewBox="0 0 {side} {side}" aria-hidden="true">{use}</svg>'


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """Draw a Tabler icon; size l is 18 px."""
    return safe(symbol(f"i-{name}", f"i {size}".strip(), 24))


@register.simple_tag
def shape(name: str) -> SafeString:
    """Draw the 12 px shape of a state without its word."""
    return safe(symbol(f"s-{name}", "st turn" if name == shapes.TURNING else "st", 12))


@register.simple_tag
def state_badge(state: Any, word: str = "", boxed: bool = False, kind: str = "") -> SafeString:
    """Show a state as shape and word; `boxed` only in page heads, `word` replaces the state's own."""
    name = str(getattr(state, "value", state))
    found = shapes.shape_of(name)
    classes = f"state {kind or found.kind}{' box' if boxed else ''}"
    return safe(f'<span class="{classes}">{shape(found.symbol)}{escape(word or shapes.word_of(name))}</span>')


@register.simple_tag
def money(amount: Any, currency: str = "", per: str = "", decimals: int | None = None) -> SafeString:
    """Write an amount: a Money, or minor units with a currency. None is unknown, and unknown is never 0."""
    if amount is None:
        return unknown()
    minor = amount.minor if hasattr(amount, "minor") else int(amount)
    code = currency or getattr(amount, "currency", "")
    return _figure(figures.money(minor, code, decimals), per)


@register.simple_tag
def price(nano: int | None, currency: str, per: str = "h") -> SafeString:
    """Write a price kept as 10⁻⁹ currency units per hour."""
    return unknown() if nano is None else _figure(figures.price(nano, currency), per)


def _figure(written: str, per: str) -> SafeString:
    unit = f"<small>/{escape(per)}</small>" if per else ""
    return safe(f'<span class="m">{escape(written)}{unit}</span>')


@register.simple_tag
def unknown() -> SafeString:
    """Write a figure nobody knows."""
    return safe(f'<span class="q m">{figures.UNKNOWN}</span>')


@register.simple_tag
def ticking_money(minor: float, nano_per_hour: int, currency: str) -> SafeString:
    """Write an amount that grows while one looks; without a script it stays as true as the page."""
    places = figures.exponent(currency)
    per_second = nano_per_hour * 10**places / figures.NANO / 3600
    return safe(
        f'<span class="m" data-tick="money" data-from="{minor}" data-per-second="{per_second:.9f}" '
        f'data-symbol="{escape(figures.symbol(currency))}" data-exponent="{places}">'
        f"{escape(figures.money(int(minor), currency))}</span>"
    )


@register.simple_tag
def duration(length: timedelta | float | None, tight: bool = False, tick: str = "") -> SafeString:
    """Write a length of time; `tick` up or down keeps it moving."""
    if length is None:
        return unknown()
    written = figures.duration(length, tight=tight)
    if not tick:
        return safe(f'<span class="d">{written}</span>')
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    short = " data-tight" if tight else ""
    return safe(f'<span class="d" data-tick="{escape(tick)}" data-from="{seconds}"{short}>{written}</span>')


@register.simple_tag(takes_context=True)
def moment(
    context: Context,
    at: datetime | None,
    seconds: bool = False,
    relative: bool = False,
    only_day: bool = False,
) -> SafeString:
    """Write a moment in the tenant's zone, with UTC in the title; `relative` adds how far away it is."""
    if at is None:
        return unknown()
    now = context.get("now") or getattr(context.get("shell"), "now", None)
    zone = timezone.get_current_timezone()
    written = (
        figures.day(at, zone=zone) if only_day else figures.moment(at, now=now, zone=zone, seconds=seconds)
    )
    utc = at.astimezone(UTC)
    time = f'<time datetime="{utc:%Y-%m-%dT%H:%M:%SZ}" title="{utc:%Y-%m-%d %H:%M:%S} UTC">{written}</time>'
    away = f' <span class="q">{figures.relative(at, now)}</span>' if relative and now else ""
    return safe(time + away)


@register.filter
def grouped(value: int | None) -> str:
    """Write a whole number with thousands apart: 2,676,186."""
    return figures.UNKNOWN if value is None else f"{value:,}"


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
    now_at: float | None = None,
) -> SafeString:
    """Draw amounts of money (minor units) per day, stacked by series of classes f1 … f6."""
    days = [charts.Column(**column) for column in columns]
    return safe(charts.stacked_bars(days, series, axis(currency), label=label, now_at=now_at))


@register.simple_tag
def budget_chart(track: dict[str, Any], currency: str, label: str) -> SafeString:
    """Draw the month's running total (minor units) against its limit."""
    return safe(charts.against_limit(charts.Track(**track), axis(currency), label=label))


def axis(currency: str) -> charts.Write:
    """Return what writes an axis value: whole units, thousands as k."""
    unit = 10 ** figures.exponent(currency)

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
        fleet.Row(row["name"], tuple(card_of(card) for card in row["cards"])) for row in block["rows"]
    )
    return fleet.Block(block["name"], block.get("note", ""), rows)


def card_of(card: dict[str, Any]) -> fleet.Card:
    """Read a card; its spans are (start, size, kind)."""
    return fleet.Card(**{**card, "spans": tuple(Span(*span) for span in card["spans"])})


@register.simple_tag
def promise_art(rows: Sequence[Sequence[Sequence[Any]]]) -> SafeString:
    """Draw real cards of the fleet as an ornament: rows of cards, each a list of (start, size, kind)."""
    return safe(small.cards([[[Span(*span) for span in card] for card in row] for row in rows]))


@register.simple_tag
def state_shape(state: Any) -> SafeString:
    """Draw the shape of a state whose word is already in the sentence beside it."""
    return shape(shapes.shape_of(str(getattr(state, "value", state))).symbol)


@register.filter
def shape_kind(state: Any) -> str:
    """Return the kind of news a state is: the class that colours its shape."""
    return shapes.shape_of(str(getattr(state, "value", state))).kind


@register.simple_tag
def empty_art(held: int = 4) -> SafeString:
    """Draw a card with some of its eight slices taken: the picture of an empty list."""
    return safe(small.eight(int(held)))
