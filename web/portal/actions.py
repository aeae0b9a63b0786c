"""Outcome of the portal's form actions, list paging, and example API calls.

An action redirects back to its page with a message that says what happened.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from tenants.services.errors import ObjectNotFound, ProblemError
from web.http.middleware import set_rejection_reason
from web.portal import kept_forms

LIST_PAGE_SIZE = 40  # per list: a page with three lists stays below 100 kB
API_PAGE_SIZE = 500  # the API's maximum page size
STATUSES_SHOWN_ON_PAGE = (400, 409, 412)  # other statuses, such as 403 and 404, have pages of their own


@contextmanager
def outcome_message(request: HttpRequest, *, done: str) -> Iterator[None]:
    """Run an action; say that it is done, or why it was refused.

    The service has undone its own work when it refuses.
    """
    try:
        yield
    except ProblemError as refusal:
        if refusal.status not in STATUSES_SHOWN_ON_PAGE:
            raise
        set_rejection_reason(request, refusal.detail)
        messages.error(request, f"{refusal.detail} {refusal.fix.text}")
        kept_forms.keep_form(request, {getattr(refusal, "field", ""): refusal.detail})
    else:
        kept_forms.take_kept_form(request)
        messages.success(request, done)


def redirect_with_errors(request: HttpRequest, form: Any, *, to: str) -> HttpResponse:
    """Redirect with the errors and values of a small form.

    It has no page of its own.
    """
    for field, errors in form.errors.items():
        wrong = f"{form.fields[field].label or field}: {' '.join(errors)}" if field in form.fields else " ".join(errors)
        set_rejection_reason(request, wrong)
        messages.error(request, wrong)
    kept_forms.keep_form(request, {form.add_prefix(field): " ".join(errors) for field, errors in form.errors.items()})
    return redirect(to)


def find_or_missing(rows: Any, pk: str) -> Any:
    """Return the row or raise ObjectNotFound; another tenant's row looks missing too."""
    row = rows.filter(pk=pk).first()
    if row is None:
        raise ObjectNotFound(_("Not found."), fix=_("Go back to the list and choose an existing item."))
    return row


def first_row_index(text: str, count: int) -> int:
    """Return the index of a page's first row; 0 if the query string is invalid."""
    start = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    return start if start < count else 0


@dataclass(frozen=True)
class ListPage:
    """One page of a list, with the URLs of the pages before and after it."""

    rows: list[Any]
    count: int
    before: str
    after: str


def list_page(
    request: HttpRequest,
    rows: Sequence[Any] | QuerySet[Any, Any],
    name: str = "from",
    *,
    count: int | None = None,
    most: int = LIST_PAGE_SIZE,
) -> ListPage:
    """Return the page of rows that the query string names.

    Other lists on the same page keep their position.
    """
    total = len(rows) if count is None else count
    start = first_row_index(request.GET.get(name, ""), total)

    def at(first: int) -> str:
        query = request.GET.copy()
        query[name] = str(first)
        return f"?{query.urlencode()}"

    return ListPage(
        rows=list(rows[start : start + most]),
        count=total,
        before=at(max(start - most, 0)) if start else "",
        after=at(start + most) if start + most < total else "",
    )


def api_call(collection: str, query: str = "") -> str:
    """Return the API call behind a page as a curl command."""
    address = f"{settings.PUBLIC_URL.rstrip('/')}/api/v1/{collection}"
    return f"curl -H \"Authorization: Bearer $GPB_TOKEN\" \\\n  '{address}{'?' if query else ''}{query}'"


def operator_api_call(title: str, collection: str, **parameters: object) -> dict[str, str]:
    """Return the API call behind an operators' table.

    It uses the session cookie, since tokens belong to tenants.
    """
    query = urlencode({name: value for name, value in parameters.items() if value != ""})
    address = f"{settings.PUBLIC_URL.rstrip('/')}/api/v1/{collection}"
    cookie = f'-b "{settings.SESSION_COOKIE_NAME}=$GPB_SESSION"'
    return {"title": title, "text": f"curl {cookie} \\\n  '{address}{'?' if query else ''}{query}'"}
