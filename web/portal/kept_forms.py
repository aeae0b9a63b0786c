"""Values of a refused form, kept until its page is drawn again.

A form in a drawer has no page of its own: a refused POST redirects to the page it is on. That page hands
the values to the browser (static/js/forms.js), which fills them in again. A page that answers the POST itself
hands them over at once, so that the browser marks the wrong field and goes there. Secrets are never kept.
"""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

KEPT_FORM = "kept-form"  # key in the session
NEVER_KEPT = {"csrfmiddlewaretoken", "value", "password", "secret", "token", "kubeconfig", "quote", "once"}
MAX_FIELDS, MAX_LENGTH = 40, 500


def keep_form(request: HttpRequest, errors: Mapping[str, str]) -> None:
    """Keep the values that were sent, with the error of each field."""
    values = {
        name: [text[:MAX_LENGTH] for text in texts if isinstance(text, str)]
        for name, texts in list(request.POST.lists())[:MAX_FIELDS]
        if name not in NEVER_KEPT and "password" not in name
    }
    of_fields = {name: words for name, words in errors.items() if name}  # others are said above the page
    request.session[KEPT_FORM] = {"action": request.path, "values": values, "errors": of_fields}


def show_kept_form(request: HttpRequest, field: str) -> None:
    """Hand the values that were sent to the page, with the wrong field.

    The page says itself what is wrong. Long texts are left to it as well.
    """
    values = {
        name: texts
        for name, texts in list(request.POST.lists())[:MAX_FIELDS]
        if name not in NEVER_KEPT and "password" not in name and sum(map(len, texts)) <= MAX_LENGTH
    }
    errors = {field: ""} if field else {}
    request.refused_form = {"action": request.path, "values": values, "errors": errors}  # type: ignore[attr-defined]


def has_kept_form(request: HttpRequest) -> bool:
    """Return whether the form of this request was refused and is kept."""
    return KEPT_FORM in request.session


def take_kept_form(request: HttpRequest) -> dict[str, Any] | None:
    """Return the form to fill in again and forget it; None if there is none."""
    if shown := getattr(request, "refused_form", None):
        return dict(shown)
    session = getattr(request, "session", None)
    if session is None or KEPT_FORM not in session:
        return None
    found: dict[str, Any] = session.pop(KEPT_FORM)
    return found
