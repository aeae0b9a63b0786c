"""Addresses of actions.

A POST acts, and reading one leads to the page the action is on.

Somebody comes back to such an address after signing in again, or from the browser's history.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from django.http import HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import Resolver404, resolve

READING = ("GET", "HEAD")
PAGES_ELSEWHERE = (  # of actions with no page above them
    ("/ops/notifications/", "/ops/system/"),
    ("/ops/refunds/", "/ops/system/"),
    ("/disputes/", "/invoices/"),
)


def allow_methods(methods: Sequence[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a page: redirect readers of an action to its page, and refuse other methods."""

    def wrap(page: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(page)
        def inside(request: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method in methods:
                answer: HttpResponseBase = page(request, *args, **kwargs)
                return answer
            if request.method in READING and "GET" not in methods:
                return redirect(page_above(request.path))
            return HttpResponseNotAllowed(methods)

        inside.methods = tuple(methods)  # type: ignore[attr-defined]
        return inside

    return wrap


def page_above(path: str) -> str:
    """Return the nearest page above an address: `/budgets/` of `/budgets/bud_1/remove/`."""
    for prefix, page in PAGES_ELSEWHERE:
        if path.startswith(prefix):
            return page
    parts = path.strip("/").split("/")
    for count in range(len(parts) - 1, 0, -1):
        above = f"/{'/'.join(parts[:count])}/"
        try:
            view = resolve(above).func
        except Resolver404:
            continue
        if "GET" in getattr(view, "methods", ()):
            return above
    return "/"
