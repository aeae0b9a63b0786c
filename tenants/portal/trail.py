"""An event of the trail as people read it: names where it keeps ids, units where it keeps counts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.utils.dateparse import parse_datetime

from tenants.domain import limits
from tenants.models import ApiToken, AuditEvent, Project, ServiceAccount, User

ID = re.compile(r"[a-z]{3}_[0-9a-z]{26}")
# Where names of rows are kept, by what their ids begin with.
NAMED: dict[str, tuple[Any, str]] = {
    "prj": (Project, "name"),
    "usr": (User, "email"),
    "sva": (ServiceAccount, "name"),
    "tok": (ApiToken, "name"),
}
LABELS = {
    "max_duration_s": "at most",
    "spent_s": "ran",
    "size_gib": "size",
    "expires_at": "until",
    "total": "amount",
}
MONEY = ("amount", "total", "minor", "settled", "to_balance")
ENDINGS = re.compile(r"_(s|gib|at|id)$")


@dataclass(frozen=True, slots=True)
class Value:
    """One figure or word, and how it is written: text, money, price, length or moment."""

    kind: str
    it: Any
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that an event tells; two values are before and after."""

    label: str
    values: Sequence[Value]


def tell(events: Iterable[Any], *, currency: str = "") -> list[Any]:
    """Give each event its `parts`. Asks for names once for each kind of row, however many events there are."""
    found = list(events)
    names = _names(found)
    for event in found:
        event.parts = list(_parts(event, names, currency))
    return found


def _names(events: Sequence[AuditEvent]) -> Mapping[str, str]:
    wanted: dict[str, set[str]] = {}
    for text in _texts([event.detail for event in events]):
        if ID.fullmatch(text):
            wanted.setdefault(text[:3], set()).add(text)
    names: dict[str, str] = {}
    for prefix in wanted.keys() & NAMED.keys():
        model, field = NAMED[prefix]
        rows = model._default_manager.filter(pk__in=wanted[prefix]).values_list("pk", F(field))
        names.update({pk: name for pk, name in rows if name})
    return names


def _texts(value: Any) -> Iterator[str]:
    """Go through every text that stands in a detail, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _parts(event: AuditEvent, names: Mapping[str, str], currency: str) -> Iterator[Part]:
    detail = dict(event.detail)
    currency = detail.pop("currency", "") or currency
    before, after = detail.pop("before", None), detail.pop("after", None)

    def value(key: str, kept: Any) -> Value:
        return _value(event, key, kept, names, currency)

    if isinstance(before, dict) or isinstance(after, dict):
        old, new = before or {}, after or {}
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield _change(_label(key), value(key, old.get(key)), value(key, new.get(key)))
    elif before is not None or after is not None:
        yield _change("", value("", before), value("", after))
    for key, kept in detail.items():
        if kept not in ("", None, [], {}):
            yield Part(_label(key), (value(key, kept),))


def _change(label: str, before: Value, after: Value) -> Part:
    """Write a change as before and after; what was nothing, or becomes nothing, is said in a word."""
    if before.it in ("", None):
        return Part(label, (after,))
    if after.it in ("", None):
        return Part(f"{label} was".strip(), (before,))
    return Part(label, (before, after))


def _label(key: str) -> str:
    return LABELS.get(key, ENDINGS.sub("", key).replace("_", " "))


def _value(event: AuditEvent, key: str, kept: Any, names: Mapping[str, str], currency: str) -> Value:
    number = isinstance(kept, int | float) and not isinstance(kept, bool)
    if number and not key and event.action.startswith("quota."):
        return _limit(event.subject_label.partition(" of ")[0], int(kept), currency)
    if number and currency and (key == "nano_per_hour" or event.action == "price.publish"):
        return Value("price", kept, currency)
    if number and currency and key in MONEY:
        return Value("money", kept, currency)
    if number and key.endswith("_s"):
        return Value("length", timedelta(seconds=kept))
    if number and key.endswith("_gib"):
        return Value("text", f"{kept:,} GiB")
    if isinstance(kept, str) and (key.endswith("_at") or key == "since") and (moment := _moment(kept)):
        return Value("moment", moment)
    return Value("text", _words(kept, names))


def _limit(kind: str, count: int, currency: str) -> Value:
    if kind == "burn" and currency:
        return Value("price", count, currency)
    known = limits.SHOWN.get(kind)
    return Value("text", f"{limits.written(kind, count)} {known[2]}" if known else f"{count:,}")


def _words(kept: Any, names: Mapping[str, str]) -> str:
    if isinstance(kept, bool):
        return "yes" if kept else "no"
    if isinstance(kept, list):
        return ", ".join(_words(inner, names) for inner in kept)
    if isinstance(kept, dict):
        told = (f"{_label(key)} {_words(inner, names)}" for key, inner in kept.items())
        return ", ".join(each for each in told if not each.endswith(" "))
    if isinstance(kept, int):
        return f"{kept:,}"
    text = "" if kept is None else str(kept)
    # The words of code, such as by_tenant; what somebody wrote has spaces.
    return names.get(text) or (text.replace("_", " ") if re.fullmatch(r"[a-z]+(_[a-z]+)+", text) else text)


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None
