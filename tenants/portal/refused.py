"""What operators tried and were refused: the wall undoes the request with its trail, so it is noted afterwards."""

from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.permissions import SAFE_METHODS

from ports import clock
from tenants.services import audit
from tenants.services.actors import Actor

OPERATIONS = "/ops/"


def because(request: HttpRequest, why: str) -> None:
    """Say in whose words a request was refused, for the trail; also when the answer leads back to its page."""
    told = why.replace(
        "\x00", "\N{REPLACEMENT CHARACTER}"
    )  # a form repeats what it got; the trail keeps no NUL
    request.refused_because = told  # type: ignore[attr-defined]


def note(request: HttpRequest, response: HttpResponseBase) -> None:
    """Write an operator's refused change into the trail, in a transaction of its own."""
    if request.method in SAFE_METHODS or not request.path.startswith(OPERATIONS):
        return
    refused = 400 <= response.status_code < 500
    why = getattr(request, "refused_because", "") or (
        getattr(response, "reason_phrase", "") if refused else ""
    )
    user: Any = getattr(request, "user", None)
    if not why or user is None or not user.is_staff:
        return
    with transaction.atomic():
        audit.record(
            f"{_action(request)}.refused",
            actor=Actor("staff", user.pk, user.email, getattr(request, "id", "")),
            now=clock.now(),
            method=request.method,
            path=request.get_full_path()[:500],
            status=response.status_code,
            why=why[:500],
        )


def _action(request: HttpRequest) -> str:
    """Return what `in_operations` calls the page; a request may be refused before it gets there."""
    match = request.resolver_match
    return str(getattr(match.func, "action", "ops") if match else "ops")
