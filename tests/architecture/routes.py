"""Every address the product answers, read from the resolver itself."""

import re
from collections.abc import Iterator
from typing import Any

from django.urls import URLResolver, get_resolver

PLACE = re.compile(r"<[^>]+>|\(\?P<\w+>(?:\[[^\]]*\]|[^()\[\]])+\)")


def walk(patterns: Any = None, prefix: str = "") -> Iterator[str]:
    """Yield the whole route of every view."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from walk(pattern.url_patterns, route)
        else:
            yield route


def places(route: str) -> int:
    """Count the ids that a route asks for."""
    return len(PLACE.findall(route))


def address(route: str, *ids: str) -> str:
    """Write an address with these ids in their places."""
    given = iter(ids)
    return "/" + PLACE.sub(lambda _: next(given), route).replace("^", "").replace("$", "")
