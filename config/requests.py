"""What every request carries: an id in its logs and answer, and a body of bearable size."""

import re
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from config.problems import page, problem_response
from ports import ids

GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestContext:
    """Name the request (X-Request-ID, kept when the caller's is harmless) in logs and answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get("X-Request-ID", "")
        request.id = given if GOOD_ID.fullmatch(given) else ids.new("req")  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=request.id, path=request.path):  # type: ignore[attr-defined]
            # No id holds a NUL, and PostgreSQL would refuse to look for one.
            response = self.get_response(request) if "\x00" not in request.path else page(request, 404)
        response["X-Request-ID"] = request.id  # type: ignore[attr-defined]
        return response


class Compression(GZipMiddleware):
    """Compress pages, styles and scripts. The API's answers stay as they are: their ETags must stay strong."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith("/api/"):
            return response
        return super().process_response(request, response)


class BodyLimit:
    """Refuse a body by its declared length, before a byte of it is read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "Transfer-Encoding" in request.headers:
            # Django reads what was declared: of such a body nothing, and every field of it would seem missing.
            return problem_response(
                request,
                status=411,
                code="length-required",
                title="The body has no declared length",
                detail="Bodies are taken by their Content-Length; this one came in chunks without one.",
                fix="Send it whole, with its Content-Length.",
            )
        declared = request.META.get("CONTENT_LENGTH") or "0"
        if not declared.isdigit() or int(declared) > settings.BODY_LIMIT_BYTES:
            return problem_response(
                request,
                status=413,
                code="body-too-large",
                title="The body is too large",
                detail=f"A body may have at most {settings.BODY_LIMIT_BYTES:,} bytes.",
                fix="Send less at once.",
            )
        return self.get_response(request)
