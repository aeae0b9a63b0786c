"""What every request carries: an id in its logs and answer, and a body of bearable size."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from config.problems import page, problem_response
from ports import ids

FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host")
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


class OneName:
    """Lead who opens a page at 127.0.0.1 to `localhost` where that is the name of this installation.

    The session's cookie, passkeys and live events belong to one name; whoever uses another has none of them. Only
    pages, and only at the port of that name: a tunnel that ends at another port is left alone. What a proxy passed on
    is left alone too: it may have put our address in the place of the visitor's Host, who would go round in a circle.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.name = settings.PUBLIC_URL.rstrip("/")
        public = urlsplit(self.name)
        addresses = ("127.0.0.1", "[::1]") if public.hostname == "localhost" else ()
        # A browser leaves the usual port of a scheme out of Host.
        usual = {"http": 80, "https": 443}.get(public.scheme)
        port = f":{public.port}" if public.port not in (None, usual) else ""
        self.others = frozenset(address + port for address in addresses)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_page = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if is_page and request.headers.get("Host") in self.others and not proxied(request):
            return HttpResponseRedirect(self.name + request.get_full_path())
        return self.get_response(request)


def proxied(request: HttpRequest) -> bool:
    """Tell whether a proxy passed the request on: behind one on this machine everybody comes from its address."""
    return any(header in request.headers for header in FORWARDED)


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
