"""Middleware for every request: id, host, compression, body limit, transaction, audit of rejected changes."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from rest_framework.permissions import SAFE_METHODS

from ports import clock, ids
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import enter_tenant
from web.http.errors import error_page, problem_response, refusal_page

PROXY_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host")
# Served without a transaction; the last calls another server (oidc_sign_in.py).
PATHS_WITHOUT_TRANSACTION = ("/static/", "/health", "/ready", "/metrics", "/account/company/oidc/")
OPERATIONS_PREFIX = "/ops/"
SAFE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Set the request's id in logs and response.

    A harmless X-Request-ID of the caller is kept.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get("X-Request-ID", "")
        request.id = given if SAFE_REQUEST_ID.fullmatch(given) else ids.new("req")  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=request.id, path=request.path):  # type: ignore[attr-defined]
            # No id contains a NUL, and PostgreSQL refuses one in a query.
            response = self.get_response(request) if "\x00" not in request.path else error_page(request, 404)
        response["X-Request-ID"] = request.id  # type: ignore[attr-defined]
        return response


class OptionsMiddleware:
    """Answer OPTIONS with the methods of a page, which does not answer it itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if request.method == "OPTIONS" and response.status_code == 405 and response.has_header("Allow"):
            return HttpResponse(status=204, headers={"Allow": f"{response['Allow']}, OPTIONS"})
        return response


class CanonicalHostMiddleware:
    """Redirect pages at 127.0.0.1 to `localhost` where that is the public name.

    Session cookie, passkeys and live events are bound to the public host name. Only pages are redirected,
    and only at the port of that name: a tunnel may end at another port. Requests from a proxy are not
    redirected: it may have replaced the visitor's Host by our address, and the redirect would loop.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.public_origin = settings.PUBLIC_URL.rstrip("/")
        public = urlsplit(self.public_origin)
        addresses = ("127.0.0.1", "[::1]") if public.hostname == "localhost" else ()
        # Browsers omit a scheme's default port from Host.
        default_port = {"http": 80, "https": 443}.get(public.scheme)
        port = f":{public.port}" if public.port not in (None, default_port) else ""
        self.redirected_hosts = frozenset(address + port for address in addresses)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_page = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if is_page and request.headers.get("Host") in self.redirected_hosts and not is_proxied(request):
            return HttpResponseRedirect(self.public_origin + request.get_full_path())
        return self.get_response(request)


def is_proxied(request: HttpRequest) -> bool:
    """Return whether a proxy passed the request on.

    Behind a proxy on this machine, every request has the machine's own address.
    """
    return any(header in request.headers for header in PROXY_HEADERS)


class CompressionMiddleware(GZipMiddleware):
    """Compress pages, styles and scripts, not API responses: their ETags must stay strong."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith("/api/"):
            return response
        return super().process_response(request, response)


class BodyLimitMiddleware:
    """Refuse a body by its declared length, before reading any of it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "Transfer-Encoding" in request.headers:
            # Django reads only the declared length: a chunked body would look empty.
            return problem_response(
                request,
                status=411,
                code="length-required",
                title="Content-Length is missing",
                detail="The body was sent in chunks without a Content-Length.",
                fix="Send the body with its Content-Length.",
            )
        declared = request.META.get("CONTENT_LENGTH") or "0"
        if not declared.isdigit() or int(declared) > settings.BODY_LIMIT_BYTES:
            return problem_response(
                request,
                status=413,
                code="body-too-large",
                title="The body is too large",
                detail=f"The body can have at most {settings.BODY_LIMIT_BYTES:,} bytes.",
                fix="Send a smaller body.",
            )
        return self.get_response(request)


class TenantTransactionMiddleware:
    """Open the request's transaction; authentication then selects the tenant.

    Roll back when the status is 400 or higher.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(PATHS_WITHOUT_TRANSACTION):
            return self.get_response(request)
        if connection.in_atomic_block:
            enter_tenant("")  # only in tests: an outer transaction may still be scoped to a tenant
        with transaction.atomic():
            response = self.get_response(request)
            if isinstance(response, HttpResponse) and response.status_code >= 400:
                transaction.set_rollback(True)
        record_rejected_change(request, response)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Render a problem as the error page: what happened, why, and what to do."""
        if not isinstance(exception, ProblemError):
            return None
        set_rejection_reason(request, exception.detail)
        page = refusal_page(request, exception)
        if "retry_after" in exception.extra:
            page["Retry-After"] = str(exception.extra["retry_after"])
        return page


def set_rejection_reason(request: HttpRequest, why: str) -> None:
    """Set the reason for the audit log why a change is rejected.

    Also for rejections whose response redirects to their page.
    """
    # A form error may quote its input; the audit log cannot store NUL.
    request.rejection_reason = why.replace("\x00", "\N{REPLACEMENT CHARACTER}")  # type: ignore[attr-defined]


def record_rejected_change(request: HttpRequest, response: HttpResponseBase) -> None:
    """Record an operator's rejected change, in a transaction of its own."""
    if request.method in SAFE_METHODS or not request.path.startswith(OPERATIONS_PREFIX):
        return
    refused = 400 <= response.status_code < 500
    why = getattr(request, "rejection_reason", "") or (getattr(response, "reason_phrase", "") if refused else "")
    user: Any = getattr(request, "user", None)
    if not why or user is None or not user.is_staff:
        return
    with transaction.atomic():
        audit.record(
            f"{_page_action(request)}.refused",
            actor=Actor("staff", user.pk, user.email, getattr(request, "id", "")),
            now=clock.now(),
            method=request.method,
            path=request.get_full_path()[:500],
            status=response.status_code,
            why=why[:500],
        )


def _page_action(request: HttpRequest) -> str:
    """Return the page's action as `operator_required` names it; `ops` if not reached."""
    match = request.resolver_match
    return str(getattr(match.func, "action", "ops") if match else "ops")
