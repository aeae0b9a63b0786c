"""Tags for what stands in every row: plain functions, because a hundred rows must render in a few ms.

They are builtins, so no template loads them. Parts that wrap other markup are components (`<c-…>`).
"""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from django import template
from django.forms import BoundField
from django.template.context import Context
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString, mark_safe

from billing.domain.money import exponent_of
from config import figures, shapes
from config.templatetags import pictures

register = template.Library()
register.tags.update(pictures.register.tags)


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
    places = exponent_of(currency)
    per_second = nano_per_hour * 10**places / figures.NANO / 3600
    return safe(
        f'<span class="m" data-tick="money" data-from="{minor}" data-per-second="{per_second:.9f}" '
        f'data-symbol="{escape(figures.symbol(currency))}" data-exponent="{places}">'
        f"{escape(figures.money(int(minor), currency))}</span>"
    )


@register.simple_tag
def ticking_seconds(seconds: int) -> SafeString:
    """Write whole seconds that pass while one looks: 17,603 s."""
    return safe(f'<span data-tick="seconds" data-from="{seconds}">{seconds:,} s</span>')


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
def cards_worth(milli: int) -> str:
    """Write thousandths of a card as cards: 1 card, 1.25 cards."""
    if milli == 1000:
        return "1 card"
    return f"{milli // 1000} cards" if milli % 1000 == 0 else f"{milli / 1000:.2f} cards"


@register.simple_tag
def state_shape(state: Any) -> SafeString:
    """Draw the shape of a state whose word is already in the sentence beside it."""
    return shape(shapes.shape_of(str(getattr(state, "value", state))).symbol)


@register.filter
def shape_kind(state: Any) -> str:
    """Return the kind of news a state is: the class that colours its shape."""
    return shapes.shape_of(str(getattr(state, "value", state))).kind


@register.simple_tag
def form_field(field: BoundField, label: str = "") -> SafeString:
    """Show a field of a Django form as the portal's fields look, with its help and its first error."""
    error = str(field.errors[0]) if field.errors else ""
    at = field.auto_id
    told = f"{at}-err" if error else f"{at}-hint" if field.help_text else ""
    attrs: dict[str, Any] = {"placeholder": False}
    if told:
        attrs["aria-describedby"] = told
    if error:
        attrs["aria-invalid"] = "true"
    below = ""
    if error:
        below = f'<p class="err" id="{told}">{shape("failed")}<span>{escape(error)}</span></p>'
    elif field.help_text:
        below = f'<p class="hint" id="{told}">{conditional_escape(field.help_text)}</p>'
    words = escape(label or field.label)
    if getattr(field.field.widget, "input_type", "") == "checkbox":
        box = field.as_widget(attrs=attrs)
        return safe(
            f'<div class="field"><label class="check" for="{at}">{box}<span>{words}</span></label>{below}</div>'
        )
    control = field.as_widget(attrs={**attrs, "class": "input"})
    return safe(f'<div class="field"><label for="{at}">{words}</label>{control}{below}</div>')
