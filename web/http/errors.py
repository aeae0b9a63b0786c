"""Errors as problem+json (RFC 9457) in the API, and as pages in the portal."""

import sys
from collections.abc import Mapping
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, IntegrityError, InterfaceError, InternalError, OperationalError, transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from psycopg.errors import ReadOnlySqlTransaction
from rest_framework import exceptions

from tenants.services import idempotency
from tenants.services.errors import Fix, ProblemError

log = structlog.get_logger(__name__)
PROBLEM_TYPE_PREFIX = "/problems/"

# DRF's own exceptions: code, title, what to do next.
PROBLEMS_BY_EXCEPTION: dict[type[Exception], tuple[str, str, str]] = {
    exceptions.NotAuthenticated: (
        "not-authenticated",
        "You are not signed in",
        "Send `Authorization: Bearer gpb_…` or sign in.",
    ),
    exceptions.AuthenticationFailed: (
        "not-authenticated",
        "The credential is not valid",
        "Create a new token on the Tokens page.",
    ),
    exceptions.PermissionDenied: (
        "policy-denied",
        "Your role does not allow this",
        "Ask an owner or admin of the project.",
    ),
    exceptions.NotFound: ("not-found", "Not found", "List the collection to find existing objects."),
    exceptions.MethodNotAllowed: (
        "method-not-allowed",
        "The method is not allowed at this address",
        "See /api/v1/openapi.json.",
    ),
    exceptions.UnsupportedMediaType: (
        "unsupported-media-type",
        "The body must be JSON",
        "Send `Content-Type: application/json`.",
    ),
    exceptions.NotAcceptable: ("not-acceptable", "Responses are JSON only", "Send `Accept: application/json`."),
    exceptions.ParseError: ("malformed-json", "The body is not JSON", "Send one JSON object."),
    exceptions.Throttled: ("rate-limited", "Too many requests", "Wait, then try again."),
}


def problem_response(
    request: HttpRequest | None, *, status: int, code: str, title: str, detail: str, fix: Fix | str, **extra: Any
) -> HttpResponse:
    """Return a problem+json response; `extra` may have errors[], quota, alternatives, retry_after."""
    fix = Fix(fix) if isinstance(fix, str) else fix
    body: dict[str, Any] = {
        "type": PROBLEM_TYPE_PREFIX + code,
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


def flatten_errors(detail: Any, field: str = "") -> list[dict[str, str]]:
    """Flatten DRF's nested validation detail into errors[{field, code, message}]."""
    if isinstance(detail, Mapping):
        return [e for name, inner in detail.items() for e in flatten_errors(inner, f"{field}.{name}".strip("."))]
    if isinstance(detail, list):
        return [e for inner in detail for e in flatten_errors(inner, field)]
    return [{"field": field, "code": getattr(detail, "code", "invalid"), "message": str(detail)}]


def describe_error(exc: Exception) -> dict[str, Any] | None:
    """Return status, code, title, detail and fix of an expected exception; else None."""
    if isinstance(exc, IntegrityError) and idempotency.is_duplicate_effect(exc):
        exc = idempotency.request_in_flight()
    if isinstance(exc, ProblemError):
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
        errors = flatten_errors(exc.detail)
        return {
            "status": 400,
            "code": "invalid",
            "title": "A value is not valid",
            "detail": "; ".join(f"{e['field']}: {e['message']}" if e["field"] else e["message"] for e in errors),
            "fix": "Correct the fields listed in `errors` and send the request again.",
            "errors": errors,
        }
    if isinstance(exc, exceptions.APIException):
        code, title, fix = next(
            (known for kind, known in PROBLEMS_BY_EXCEPTION.items() if isinstance(exc, kind)),
            ("refused", "The request cannot be fulfilled", "See `detail`."),
        )
        extra = {"retry_after": int(getattr(exc, "wait", 0) or 1)} if isinstance(exc, exceptions.Throttled) else {}
        return {"status": exc.status_code, "code": code, "title": title, "detail": str(exc.detail), "fix": fix, **extra}
    return DATABASE_UNAVAILABLE if is_database_unavailable(exc) else None


def is_database_unavailable(exc: BaseException | None) -> bool:
    """Return whether the database could not serve.

    It is unreachable, restarting, out of space, too slow, or read-only.
    """
    return isinstance(exc, OperationalError | InterfaceError) or (
        # psycopg reports a read-only server as an internal error.
        isinstance(exc, InternalError) and isinstance(exc.__cause__, ReadOnlySqlTransaction)
    )


def exception_handler(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """DRF exception handler: expected errors become problems, others a logged 500."""
    request = context["request"]._request if context.get("request") else None
    known = describe_error(exc)
    if known is None:
        log.error("unexpected", exc_info=exc)
        known = INTERNAL_ERROR
    if not isinstance(exc, DatabaseError) and transaction.get_connection().in_atomic_block:
        transaction.set_rollback(True)
    response = problem_response(request, **known)
    if isinstance(exc, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        response["WWW-Authenticate"] = 'Bearer realm="gpubroker"'
    return response


DATABASE_UNAVAILABLE: dict[str, Any] = {
    "status": 503,
    "code": "busy",
    "title": "The database is busy or unavailable",
    "detail": "Nothing was changed.",
    "fix": "Try again with the same Idempotency-Key.",
    "retry_after": 2,
}
# The database failed during commit: the request may have taken effect; repeating its key tells.
OUTCOME_UNCERTAIN = "The request was either not executed, or executed and its response was lost."

INTERNAL_ERROR: dict[str, Any] = {
    "status": 500,
    "code": "internal",
    "title": "Internal error",
    "detail": "An unexpected error occurred. Nothing was changed.",
    "fix": "Try again with the same Idempotency-Key. If it happens again, contact the operator with the request_id.",
}

ERROR_PAGES: dict[int, tuple[str, str, str]] = {
    400: ("malformed", "The request is not valid", "Go back and try again."),
    403: ("policy-denied", "Your role does not allow this", "Ask an owner or admin of the project."),
    404: ("not-found", "Page not found", "Go to the home page, or search."),
    500: (INTERNAL_ERROR["code"], INTERNAL_ERROR["title"], INTERNAL_ERROR["fix"]),
    503: (
        DATABASE_UNAVAILABLE["code"],
        DATABASE_UNAVAILABLE["title"],
        "Wait a few seconds and check the current state before you try again.",
    ),
}
# For programs, which have no home page to go to.
API_NOT_FOUND_FIX = Fix("See the list of addresses.", action="GET", href="/api/v1/openapi.json")


def error_page(request: HttpRequest, status: int, detail: str = "") -> HttpResponse:
    """Return the error page, or a problem for a URL of the API."""
    code, title, fix = ERROR_PAGES[status]
    if request.path.startswith("/api/"):
        advice = API_NOT_FOUND_FIX if status == 404 else fix
        return problem_response(request, status=status, code=code, title=title, detail=detail or title, fix=advice)
    return render_error(request, status, title=title, detail=detail, fix=fix)


def render_error(request: HttpRequest, status: int, *, title: str, detail: str, fix: str) -> HttpResponse:
    """Render an error as a page.

    Inside the menu for whoever is signed in, unless the database is in doubt.
    """
    user = getattr(request, "user", None)
    in_frame = status < 500 and transaction.get_connection().in_atomic_block and bool(user and user.is_authenticated)
    request.is_error_page = in_frame  # type: ignore[attr-defined]  # its layout enters the tenant itself
    context = {"status": status, "title": title, "detail": detail, "fix": fix, "request_id": getattr(request, "id", "")}
    return render(request, "errors/page_with_menu.html" if in_frame else "errors/page.html", context, status=status)


def refusal_page(request: HttpRequest, refusal: ProblemError) -> HttpResponse:
    """Return the error page of a refusal."""
    return render_error(request, refusal.status, title=refusal.title, detail=refusal.detail, fix=refusal.fix.text)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_page(request, 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_page(request, 403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_page(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Handle an unexpected error, or a database unreachable when the transaction began or ended."""
    if not is_database_unavailable(sys.exc_info()[1]):
        return error_page(request, 500)
    if request.path.startswith("/api/"):
        return problem_response(request, **DATABASE_UNAVAILABLE | {"detail": OUTCOME_UNCERTAIN})
    return error_page(request, 503, OUTCOME_UNCERTAIN)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return 403 for a wrong or missing CSRF token."""
    return render_error(
        request,
        403,
        title="The form has expired",
        detail="Its CSRF token is missing or wrong, so nothing was changed.",
        fix="Reload the page and submit it again.",
    )
