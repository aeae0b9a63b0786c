"""Build page URLs whose query string holds a list's filters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from django.http import HttpRequest, QueryDict

POSITION_PARAMETERS = ("cursor", "line", "part")  # the position in a list, not its filters


class LinkOption(TypedDict, total=False):
    """One choice in a menu or a row of tabs."""

    url: str
    label: str
    current: bool
    count: int | None


def page_url(request: HttpRequest, **changes: str | None) -> str:
    """Return this page's URL with changed query parameters; None removes one."""
    query = QueryDict(request.GET.urlencode(), mutable=True)
    for name in POSITION_PARAMETERS:
        query.pop(name, None)
    for name, value in changes.items():
        if value is None or value == "":
            query.pop(name, None)
        else:
            query[name] = value
    return f"{request.path}?{query.urlencode()}" if query else request.path


def chosen_value(request: HttpRequest, name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a query parameter if its value is a known one, else `otherwise`."""
    value = request.GET.get(name, "")
    return value if value in known else otherwise


def link_options(request: HttpRequest, name: str, choices: Sequence[tuple[str, str]], current: str) -> list[LinkOption]:
    """Return one option per (value, label) choice, with the URL that selects it."""
    return [
        {"url": page_url(request, **{name: value}), "label": label, "current": value == current}
        for value, label in choices
    ]


def state_tabs(
    url: str, choices: Iterable[tuple[str, str]], counts: Mapping[str, int], current: str
) -> list[LinkOption]:
    """Return a tab with a count for each (state, label).

    The empty state is the list's default, with the bare URL.
    """
    return [
        {
            "url": f"{url}?state={state}" if state else url,
            "label": label,
            "count": counts.get(state, 0),
            "current": state == current,
        }
        for state, label in choices
    ]


def filter_chip(request: HttpRequest, name: str, label: str, choices: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return a filter chip: its value with the URL that removes it, or its choices."""
    known = dict(choices)
    value = chosen_value(request, name, known)
    return {
        "label": label,
        "value": known.get(value, ""),
        "remove": page_url(request, **{name: None}) if value else "",
        "options": link_options(request, name, choices, value),
    }
