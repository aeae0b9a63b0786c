"""Audit events formatted for display: names instead of ids, units instead of counts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from billing.domain.tax import format_rate_percent
from tenants.domain import quota_limits
from tenants.models import ApiToken, AuditEvent, Project, ServiceAccount, User

ID = re.compile(r"[a-z]{3}_[0-9a-z]{26}")
# id prefix -> model and field of the name
NAMED_MODELS: dict[str, tuple[Any, str]] = {
    "prj": (Project, "name"),
    "usr": (User, "email"),
    "sva": (ServiceAccount, "name"),
    "tok": (ApiToken, "name"),
}
DETAIL_LABELS = {
    "bearer": "owner",
    "max_duration_s": "at most",
    "active_seconds": "ran",
    "size_gib": "size",
    "expires_at": "until",
    "total": "amount",
}
MONEY_KEYS = ("amount", "total", "minor", "settled", "to_balance")
RECORDED_PRICE = re.compile(r"(\d+)\.(\d{9}) ([A-Z]{3})/h")  # of commitments
UNIT_SUFFIXES = re.compile(r"_(s|gib|at|id)$")


@dataclass(frozen=True, slots=True)
class AuditValue:
    """A value and its format: text, money, price, length or moment."""

    kind: str
    it: Any
    currency: str = ""


@dataclass(frozen=True, slots=True)
class AuditDetail:
    """One detail of an event; two values are before and after."""

    label: str
    values: Sequence[AuditValue]


def describe_events(events: Iterable[Any], *, currency: str = "") -> list[Any]:
    """Set the `parts` of each event; one query per kind of named row."""
    found = list(events)
    names = _load_names(found)
    for event in found:
        event.parts = list(_event_details(event, names, currency))
    return found


def _load_names(events: Sequence[AuditEvent]) -> Mapping[str, str]:
    wanted: dict[str, set[str]] = {}
    for text in _detail_texts([event.detail for event in events]):
        if ID.fullmatch(text):
            wanted.setdefault(text[:3], set()).add(text)
    names: dict[str, str] = {}
    for prefix in wanted.keys() & NAMED_MODELS.keys():
        model, field = NAMED_MODELS[prefix]
        rows = model._default_manager.filter(pk__in=wanted[prefix]).values_list("pk", F(field))
        names.update({pk: name for pk, name in rows if name})
    return names


def _detail_texts(value: Any) -> Iterator[str]:
    """Yield every text in a detail, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _detail_texts(inner)


def _event_details(event: AuditEvent, names: Mapping[str, str], currency: str) -> Iterator[AuditDetail]:
    detail = dict(event.detail)
    currency = detail.pop("currency", "") or currency
    before, after = detail.pop("before", None), detail.pop("after", None)

    def value(key: str, kept: Any) -> AuditValue:
        return _detail_value(event, key, kept, names, currency)

    if isinstance(before, dict) or isinstance(after, dict):
        old, new = before or {}, after or {}
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield _change_detail(_detail_label(key), value(key, old.get(key)), value(key, new.get(key)))
    elif before is not None or after is not None:
        yield _change_detail("", value("", before), value("", after))
    for key, kept in detail.items():
        if kept not in ("", None, [], {}):
            yield AuditDetail(_detail_label(key), (value(key, kept),))


def _change_detail(label: str, before: AuditValue, after: AuditValue) -> AuditDetail:
    """Return a change as before and after; an empty side is omitted or named."""
    if before.it in ("", None):
        return AuditDetail(label, (after,))
    if after.it in ("", None):
        return AuditDetail(_("{label} was").format(label=label).strip(), (before,))
    return AuditDetail(label, (before, after))


def _detail_label(key: str) -> str:
    return DETAIL_LABELS.get(key, UNIT_SUFFIXES.sub("", key).replace("_", " "))


def _detail_value(event: AuditEvent, key: str, kept: Any, names: Mapping[str, str], currency: str) -> AuditValue:
    number = isinstance(kept, int | float) and not isinstance(kept, bool)
    if number and not key and event.action.startswith("quota."):
        return _quota_value(event.subject_label.partition(" of ")[0], int(kept), currency)
    if number and not key and event.action == "tax.publish":
        return AuditValue("text", _("{percent} %").format(percent=format_rate_percent(int(kept))))
    if number and currency and (key == "nano_per_hour" or _is_price(event, key)):
        return AuditValue("price", kept, currency)
    if number and currency and key in MONEY_KEYS:
        return AuditValue("money", kept, currency)
    if number and key.endswith(("_s", "_seconds")):
        return AuditValue("length", timedelta(seconds=kept))
    if number and key.endswith("_gib"):
        return AuditValue("text", _("{kept:,} GiB").format(kept=kept))
    if key == "price" and isinstance(kept, str) and (price := RECORDED_PRICE.fullmatch(kept)):
        return AuditValue("price", int(price[1] + price[2]), price[3])
    if isinstance(kept, str) and (key.endswith("_at") or key == "since") and (moment := _parse_moment(kept)):
        return AuditValue("moment", moment)
    return AuditValue("text", _value_text(kept, names))


def _is_price(event: AuditEvent, key: str) -> bool:
    """Return whether a number in an audit event is a price."""
    return event.action.startswith("price.") and key in ("", "price")


def _quota_value(kind: str, count: int, currency: str) -> AuditValue:
    if kind == "burn" and currency:
        return AuditValue("price", count, currency)
    known = quota_limits.QUOTA_UNITS.get(kind)
    return AuditValue("text", f"{quota_limits.format_count(kind, count)} {known[2]}" if known else f"{count:,}")


def _value_text(kept: Any, names: Mapping[str, str]) -> str:
    if isinstance(kept, bool):
        return "yes" if kept else "no"
    if isinstance(kept, list):
        return ", ".join(_value_text(inner, names) for inner in kept)
    if isinstance(kept, dict):
        details = (f"{_detail_label(key)} {_value_text(inner, names)}" for key, inner in kept.items())
        return ", ".join(each for each in details if not each.endswith(" "))
    if isinstance(kept, int):
        return f"{kept:,}"
    text = "" if kept is None else str(kept)
    # Identifiers such as by_tenant become words; free text has spaces.
    return names.get(text) or (text.replace("_", " ") if re.fullmatch(r"[a-z]+(_[a-z]+)+", text) else text)


def _parse_moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None
