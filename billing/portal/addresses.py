"""Addresses that carry their filters: the query string is the state of a list."""

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from django.http import HttpRequest, QueryDict

NOT_KEPT = ("cursor", "line", "part")  # where one is in a list, not what the list holds


class Option(TypedDict, total=False):
    """One choice of a menu or a row of tabs."""

    url: str
    label: str
    current: bool
    count: int | None


def varied(request: HttpRequest, **changes: str | None) -> str:
    """Return this page's address with other parameters; None takes one away."""
    query = QueryDict(request.GET.urlencode(), mutable=True)
    for name in NOT_KEPT:
        query.pop(name, None)
    for name, value in changes.items():
        if value is None or value == "":
            query.pop(name, None)
        else:
            query[name] = value
    return f"{request.path}?{query.urlencode()}" if query else request.path


def chosen(request: HttpRequest, name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a parameter's value when it is one we know."""
    value = request.GET.get(name, "")
    return value if value in known else otherwise


def options(
    request: HttpRequest, name: str, choices: Sequence[tuple[str, str]], current: str
) -> list[Option]:
    """Return one option per choice (value, label), each with the address that chooses it."""
    return [
        {"url": varied(request, **{name: value}), "label": label, "current": value == current}
        for value, label in choices
    ]


def menu(request: HttpRequest, name: str, label: str, choices: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return a filter as a chip: its value with the address that removes it, or its choices."""
    known = dict(choices)
    value = chosen(request, name, known)
    return {
        "label": label,
        "value": known.get(value, ""),
        "remove": varied(request, **{name: None}) if value else "",
        "options": options(request, name, choices, value),
    }
