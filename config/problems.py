"""Every error of the API as problem+json (RFC 9457), and of the portal as a page: what, why, what next."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    transaction,
)
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from psycopg.errors import ReadOnlySqlTransaction
from rest_framework import exceptions
from rest_framework.parsers import BaseParser

from tenants.services import answers
from tenants.services.refusals import Fix, Refused

log = structlog.get_logger(__name__)
TYPE = "/problems/"
DEPTH = 20

# DRF's own exceptions: code, title, what to do next.
KNOWN: dict[type[Exception], tuple[str, str, str]] = {
    exceptions.NotAuthenticated: (
        "not-authenticated",
        "Nobody is signed in",
        "Send `Authorization: Bearer gpb_…` or sign in.",
    ),
    exceptions.AuthenticationFailed: (
        "not-authenticated",
        "This credential does not work",
        "Make a new token on the page Tokens.",
    ),
    exceptions.PermissionDenied: (
        "policy-denied",
        "Your role does not allow this",
        "Ask an owner or admin of the project.",
    ),
    exceptions.NotFound: ("not-found", "There is no such thing here", "List the collection to see what is."),
    exceptions.MethodNotAllowed: (
        "method-not-allowed",
        "This address does not take that method",
        "See /api/v1/openapi.json.",
    ),
    exceptions.UnsupportedMediaType: (
        "unsupported-media-type",
        "Only JSON is understood",
        "Send `Content-Type: application/json`.",
    ),
    exceptions.NotAcceptable: (
        "not-acceptable",
        "Only JSON is spoken here",
        "Send `Accept: application/json`.",
    ),
    exceptions.ParseError: ("malformed-json", "The body is not JSON", "Send one JSON object."),
    exceptions.Throttled: ("rate-limited", "Too many requests", "Wait, then try again."),
}


def problem_response(
    request: HttpRequest | None,
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    fix: Fix | str,
    **extra: Any,
) -> HttpResponse:
    """Build one problem+json answer; `extra` may hold errors[], quota, alternatives, retry_after."""
    fix = Fix(fix) if isinstance(fix, str) else fix
    body: dict[str, Any] = {
        "type": TYPE + code,
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.path if request else "",
        "code": code,
        "request_id": getattr(request, "id", ""),
        "fix": {k: v for k, v in (("text", fix.text), ("action", fix.action), ("href", fix.href)) if v},
        **extra,
    }
    response = JsonResponse(body, status=status, content_type="application/problem+json")
    if "retry_after" in extra:
        response["Retry-After"] = str(extra["retry_after"])
    return response


def flatten(detail: Any, field: str = "") -> list[dict[str, str]]:
    """Turn DRF's nested validation detail into errors[{field, code, message}]."""
    if isinstance(detail, Mapping):
        return [e for name, inner in detail.items() for e in flatten(inner, f"{field}.{name}".strip("."))]
    if isinstance(detail, list):
        return [e for inner in detail for e in flatten(inner, field)]
    return [{"field": field, "code": getattr(detail, "code", "invalid"), "message": str(detail)}]


def describe(exc: Exception) -> dict[str, Any] | None:
    """Tell status, code, title, detail and fix of an expected exception; None for a surprise."""
    if isinstance(exc, IntegrityError) and answers.is_second(exc):
        exc = answers.in_flight()
    if isinstance(exc, Refused):
        return {
            "status": exc.status,
            "code": exc.code,
            "title": exc.title,
            "detail": exc.detail,
            "fix": exc.fix,
            **exc.extra,
        }
    if isinstance(exc, Http404):
        exc = exceptions.NotFound()
    elif isinstance(exc, PermissionDenied):
        exc = exceptions.PermissionDenied()
    if isinstance(exc, exceptions.ValidationError):
        errors = flatten(exc.detail)
        return {
            "status": 400,
            "code": "invalid",
            "title": "A value cannot be used",
            "detail": "; ".join(
                f"{e['field']}: {e['message']}" if e["field"] else e["message"] for e in errors
            ),
            "fix": "Correct the fields named in `errors` and send it again.",
            "errors": errors,
        }
    if isinstance(exc, exceptions.APIException):
        code, title, fix = next(
            (known for kind, known in KNOWN.items() if isinstance(exc, kind)),
            ("refused", "This cannot be done", "See `detail`."),
        )
        extra = (
            {"retry_after": int(getattr(exc, "wait", 0) or 1)}
            if isinstance(exc, exceptions.Throttled)
            else {}
        )
        return {
            "status": exc.status_code,
            "code": code,
            "title": title,
            "detail": str(exc.detail),
            "fix": fix,
            **extra,
        }
    return AWAY if is_away(exc) else None


def is_away(exc: BaseException | None) -> bool:
    """Tell whether the database could not serve: away, restarting, out of room, waiting too long, or read-only."""
    return isinstance(exc, OperationalError | InterfaceError) or (
        # PostgreSQL files a server that was set to read-only under internal errors.
        isinstance(exc, InternalError) and isinstance(exc.__cause__, ReadOnlySqlTransaction)
    )


def problem(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """DRF's exception handler: expected errors become problems, surprises become a logged 500."""
    request = context["request"]._request if context.get("request") else None
    known = describe(exc)
    if known is None:
        log.error("unexpected", exc_info=exc)
        known = SURPRISE
    if not isinstance(exc, DatabaseError) and transaction.get_connection().in_atomic_block:
        transaction.set_rollback(True)
    response = problem_response(request, **known)
    if isinstance(exc, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        response["WWW-Authenticate"] = 'Bearer realm="gpubroker"'
    return response


AWAY: dict[str, Any] = {
    "status": 503,
    "code": "busy",
    "title": "The database is busy or away",
    "detail": "Nothing was changed.",
    "fix": "Try again with the same Idempotency-Key.",
    "retry_after": 2,
}
# The database went while it committed: the request may have had its effect, and the key will tell.
UNCERTAIN = "What you asked for was not done, or was done and its answer lost."

SURPRISE: dict[str, Any] = {
    "status": 500,
    "code": "internal",
    "title": "This is our mistake",
    "detail": "Something unexpected happened; nothing was changed.",
    "fix": "Try again with the same Idempotency-Key; if it stays, send us the request_id.",
}

PAGES: dict[int, tuple[str, str, str]] = {
    400: ("malformed", "This request cannot be read", "Go back and try again."),
    403: ("policy-denied", "Your role does not allow this", "Ask an owner or admin of the project."),
    404: ("not-found", "There is no such page", "Go to the home page, or search."),
    500: (SURPRISE["code"], SURPRISE["title"], SURPRISE["fix"]),
    503: (AWAY["code"], AWAY["title"], "Wait a few seconds, then look again before you repeat anything."),
}
# A program has no home page to go to.
LOST = Fix("See what addresses there are.", action="GET", href="/api/v1/openapi.json")


def page(request: HttpRequest, status: int, detail: str = "") -> HttpResponse:
    """Answer with the error page, or with a problem when the address is the API's."""
    code, title, fix = PAGES[status]
    if request.path.startswith("/api/"):
        advice = LOST if status == 404 else fix
        return problem_response(
            request, status=status, code=code, title=title, detail=detail or title, fix=advice
        )
    return render(
        request,
        "errors/page.html",
        {
            "status": status,
            "title": title,
            "detail": detail,
            "fix": fix,
            "request_id": getattr(request, "id", ""),
        },
        status=status,
    )


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return page(request, 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return page(request, 403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return page(request, 404)


def surprise(request: HttpRequest) -> HttpResponse:
    """Answer what no view has: also a database that was away when the transaction began or ended."""
    if not is_away(sys.exc_info()[1]):
        return page(request, 500)
    if request.path.startswith("/api/"):
        return problem_response(request, **AWAY | {"detail": UNCERTAIN})
    return page(request, 503, UNCERTAIN)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form was not ours, or cookies are off."""
    return page(request, 403, "The form's secret is missing or old. Reload the page and send it again.")


class StrictJSONParser(BaseParser):
    """JSON as the RFC has it: one object, no NaN, no duplicate keys, no absurd depth, no NUL in text."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        try:
            body = json.loads(stream.read().decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise exceptions.ParseError(f"The body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise exceptions.ParseError("The body must be one JSON object.")
        _bearable(body, DEPTH)
        return body


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise ValueError("a name stands twice in one object")
    return dict(pairs)


def _bearable(value: Any, depth: int) -> None:
    if depth == 0:
        raise exceptions.ParseError(f"The body is nested more than {DEPTH} deep.")
    if isinstance(value, str) and (("\x00" in value) or any("\ud800" <= c <= "\udfff" for c in value)):
        raise exceptions.ParseError("Text may hold neither NUL nor half a surrogate pair.")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**63 - 1:
        raise exceptions.ParseError("A number is larger than 64 bits hold.")
    if isinstance(value, dict):
        for name, inner in value.items():
            _bearable(name, depth)
            _bearable(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _bearable(inner, depth - 1)
