"""How a form of the portal ends: back on its page, with a sentence that says what happened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from tenants.portal.refused import because
from tenants.services.refusals import Missing, Refused

ROWS = 40  # of a list on a page: with the frame and two more lists it stays below 100 kB
MOST = 500  # rows that one answer of the API holds at most
ON_THE_PAGE = (400, 409, 412)  # others, such as 403 and 404, are pages of their own


def act(request: HttpRequest, do: Callable[[], object], *, done: str, to: str) -> HttpResponse:
    """Do it and go back; a service that refuses has undone its own work, so the page can say why."""
    try:
        do()
    except Refused as refusal:
        if refusal.status not in ON_THE_PAGE:
            raise
        because(request, refusal.detail)
        messages.error(request, f"{refusal.detail} {refusal.fix.text}")
    else:
        messages.success(request, done)
    return redirect(to)


def complain(request: HttpRequest, form: Any, *, to: str) -> HttpResponse:
    """Go back with what is wrong in a small form that has no page of its own."""
    for field, errors in form.errors.items():
        wrong = f"{form.fields[field].label or field}: {' '.join(errors)}"
        because(request, wrong)
        messages.error(request, wrong)
    return redirect(to)


def find(rows: Any, pk: str) -> Any:
    """Return the row, or say that there is none: another tenant's looks the same."""
    row = rows.filter(pk=pk).first()
    if row is None:
        raise Missing("There is no such thing here.", fix="Go back to the list to see what is.")
    return row


def begin(text: str, count: int) -> int:
    """Return with which of so many rows a page begins; with the first where the address names none of them."""
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    return start if start < count else 0


@dataclass(frozen=True)
class Part:
    """Some rows of a list, and where the address leads to what is before and after them."""

    rows: list[Any]
    count: int
    before: str
    after: str


def part(
    request: HttpRequest,
    rows: Sequence[Any] | QuerySet[Any, Any],
    name: str = "from",
    *,
    count: int | None = None,
    most: int = ROWS,
) -> Part:
    """Return the rows that a page begins with where its address says; the other lists of the page stay as they are."""
    total = len(rows) if count is None else count
    start = begin(request.GET.get(name, ""), total)

    def at(first: int) -> str:
        asked = request.GET.copy()
        asked[name] = str(first)
        return f"?{asked.urlencode()}"

    return Part(
        rows=list(rows[start : start + most]),
        count=total,
        before=at(max(start - most, 0)) if start else "",
        after=at(start + most) if start + most < total else "",
    )


def call(collection: str, query: str = "") -> str:
    """Write the call that gives what a page shows, as it can be pasted into a shell."""
    address = f"{settings.PUBLIC_URL.rstrip('/')}/api/v1/{collection}"
    return f"curl -H \"Authorization: Bearer $GPB_TOKEN\" \\\n  '{address}{'?' if query else ''}{query}'"


def ops_call(title: str, collection: str, **asked: object) -> dict[str, str]:
    """Write the call that gives a table of the operators: with their session, for tokens belong to tenants."""
    query = urlencode({name: value for name, value in asked.items() if value != ""})
    address = f"{settings.PUBLIC_URL.rstrip('/')}/api/v1/{collection}"
    cookie = f'-b "{settings.SESSION_COOKIE_NAME}=$GPB_SESSION"'
    return {"title": title, "text": f"curl {cookie} \\\n  '{address}{'?' if query else ''}{query}'"}
