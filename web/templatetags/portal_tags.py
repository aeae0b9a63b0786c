"""Template tags used in every row.

They are plain functions, because a hundred rows must render in a few ms, and builtins, so no
template loads them. Components (`<c-…>`) wrap other markup.
"""

import re
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
from django.utils.translation import gettext as _

from billing.domain.money import MINUS, exponent_of
from broker.domain.geometry.host_resources import HostResources
from web.templatetags import api_example_tags, chart_tags
from web.ui import formatting, state_badges

BETWEEN_OPTIONS = re.compile(r"\s*\n\s*(?=</?(?:select|optgroup|option)\b)")  # as Django's own templates write them

register = template.Library()
register.tags.update(chart_tags.register.tags)
register.tags.update(api_example_tags.register.tags)


def safe(markup: str) -> SafeString:
    """Mark markup built only from escaped parts as safe HTML."""
    return mark_safe(markup)


@cache
def sprite_url() -> str:
    return static("icons.svg")


def sprite_symbol(name: str, classes: str, side: int) -> str:
    """Return a symbol of the SVG sprite, hidden from screen readers."""
    use = f'<use href="{sprite_url()}#{escape(name)}"/>'
    return f'<svg class="{classes}" viewBox="0 0 {side} {side}" aria-hidden="true">{use}</svg>'


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """Draw a Tabler icon; size large is 18 px."""
    return safe(sprite_symbol(f"i-{name}", "icon icon-large" if size == "large" else "icon", 24))


@register.simple_tag
def shape(name: str) -> SafeString:
    """Draw the 12 px symbol of a state without its word."""
    classes = "state-symbol spinning" if name == state_badges.SPINNING_SYMBOL else "state-symbol"
    return safe(sprite_symbol(f"s-{name}", classes, 12))


@register.simple_tag
def state_badge(state: Any, word: str = "", boxed: bool = False, kind: str = "") -> SafeString:
    """Draw a state badge; `boxed` only in page heads, `word` replaces the state's own."""
    name = str(getattr(state, "value", state))
    found = state_badges.badge_of(name)
    classes = f"state-badge {kind or found.kind}{' state-badge-boxed' if boxed else ''}"
    return safe(f'<span class="{classes}">{shape(found.symbol)}{escape(word or state_badges.state_word(name))}</span>')


@register.simple_tag
def money(amount: Any, currency: str = "", per: str = "", decimals: int | None = None) -> SafeString:
    """Format an amount: a Money, or minor units with a currency.

    None is shown as unknown, never as 0.
    """
    if amount is None:
        return unknown()
    minor = amount.minor if hasattr(amount, "minor") else int(amount)
    code = currency or getattr(amount, "currency", "")
    return _money_markup(formatting.format_money(minor, code, decimals), per)


@register.simple_tag
def price(nano: int | None, currency: str, per: str = "h") -> SafeString:
    """Format a price in 10⁻⁹ currency units per hour."""
    return unknown() if nano is None else _money_markup(formatting.format_price(nano, currency), per)


def _money_markup(written: str, per: str) -> SafeString:
    unit = f"<small>/{escape(per)}</small>" if per else ""
    return safe(f'<span class="money">{escape(written)}{unit}</span>')


@register.simple_tag
def unknown() -> SafeString:
    """Return the sign of an unknown figure."""
    return safe(f'<span class="faint money">{formatting.UNKNOWN}</span>')


@register.simple_tag
def ticking_money(minor: float, nano_per_hour: int, currency: str) -> SafeString:
    """Format an amount that a script keeps growing; without one it is the page's."""
    places = exponent_of(currency)
    per_second = nano_per_hour * 10**places / formatting.NANO / 3600
    return safe(
        f'<span class="money" data-tick="money" data-from="{minor}" data-per-second="{per_second:.9f}" '
        f'data-symbol="{escape(formatting.currency_symbol(currency))}" data-exponent="{places}">'
        f"{escape(formatting.format_money(int(minor), currency))}</span>"
    )


@register.simple_tag
def ticking_seconds(seconds: int) -> SafeString:
    """Format whole seconds that a script keeps counting: 17,603 s."""
    return safe(f'<span data-tick="seconds" data-from="{seconds}">{seconds:,} s</span>')


@register.simple_tag
def duration(length: timedelta | float | None, tight: bool = False, tick: str = "") -> SafeString:
    """Format a duration; `tick` up or down lets a script update it."""
    if length is None:
        return unknown()
    written = formatting.format_duration(length, tight=tight)
    if not tick:
        return safe(f'<span class="duration">{written}</span>')
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    short = " data-tight" if tight else ""
    return safe(f'<span class="duration" data-tick="{escape(tick)}" data-from="{seconds}"{short}>{written}</span>')


@register.simple_tag(takes_context=True)
def moment(
    context: Context, at: datetime | None, seconds: bool = False, relative: bool = False, only_day: bool = False
) -> SafeString:
    """Format a moment in the tenant's zone, with UTC in the title.

    `relative` adds how far away it is.
    """
    if at is None:
        return unknown()
    # The request's own first: the shell's costs the queries of its figures, which a part of a page does not show.
    known = (getattr(context.get(name), "now", None) for name in ("request", "shell"))
    now = context.get("now") or next(filter(None, known), None)
    zone = timezone.get_current_timezone()
    written = (
        formatting.format_day(at, zone=zone)
        if only_day
        else formatting.format_moment(at, now=now, zone=zone, seconds=seconds)
    )
    utc = at.astimezone(UTC)
    time = f'<time datetime="{utc:%Y-%m-%dT%H:%M:%SZ}" title="{utc:%Y-%m-%d %H:%M:%S} UTC">{written}</time>'
    away = f' <span class="faint">{formatting.format_relative(at, now)}</span>' if relative and now else ""
    return safe(time + away)


@register.filter
def grouped(value: int | None) -> str:
    """Format a whole number with thousands separators and a real minus: 2,676,186."""
    return formatting.UNKNOWN if value is None else f"{value:,}".replace("-", MINUS)


@register.filter
def status_words(status: str) -> str:
    """Write a status code as words: `needs_response` is "needs response"."""
    return status.replace("_", " ")


@register.filter
def profile_name(profile: str) -> str:
    """Name a profile for people: `whole-gpu` has no other name."""
    return formatting.format_profile(profile)


@register.filter
def gpu_memory(memory_gb: int) -> str:
    """Format the memory of a GPU or slice; that there is no GPU for zero."""
    return formatting.format_gpu_memory(memory_gb)


@register.filter
def resources_text(amounts: HostResources) -> str:
    """Format what a slice brings: 12 CPUs, 96 GiB memory, 200 GiB scratch."""
    return formatting.format_resources(amounts)


@register.simple_tag
def gpus_worth(milli: int) -> str:
    """Format thousandths of a GPU as GPUs: 1 GPU, 1.25 GPUs."""
    if milli == 1000:
        return "1 GPU"
    return (
        _("{milli} GPUs").format(milli=milli // 1000)
        if milli % 1000 == 0
        else _("{milli:.2f} GPUs").format(milli=milli / 1000)
    )


@register.simple_tag
def state_shape(state: Any) -> SafeString:
    """Draw a state's symbol beside a sentence that names it."""
    return shape(state_badges.badge_of(str(getattr(state, "value", state))).symbol)


@register.filter
def shape_kind(state: Any) -> str:
    """Return a state's kind: the CSS class that colours its symbol."""
    return state_badges.badge_of(str(getattr(state, "value", state))).kind


@register.simple_tag
def form_field(field: BoundField, label: str = "", hint: str = "") -> SafeString:
    """Render a Django form field with its help text, or this hint, and first error."""
    error = str(field.errors[0]) if field.errors else ""
    at = field.auto_id
    described_by = f"{at}-err" if error else f"{at}-hint" if field.help_text else ""
    attrs: dict[str, Any] = {"placeholder": False}
    if described_by:
        attrs["aria-describedby"] = described_by
    if error:
        attrs["aria-invalid"] = "true"
    below = ""
    if error:
        below = f'<p class="field-error" id="{described_by}">{shape("failed")}<span>{escape(error)}</span></p>'
    elif field.help_text:
        below = f'<p class="field-hint" id="{described_by}">{conditional_escape(hint or field.help_text)}</p>'
    words = escape(label or field.label)
    if getattr(field.field.widget, "input_type", "") == "checkbox":
        box = field.as_widget(attrs=attrs)
        return safe(
            f'<div class="field"><label class="checkbox" for="{at}">{box}<span>{words}</span></label>{below}</div>'
        )
    control = BETWEEN_OPTIONS.sub("", field.as_widget(attrs={**attrs, "class": "input"}))
    return safe(f'<div class="field"><label for="{at}">{words}</label>{control}{below}</div>')
