"""Rate limits of requests by address, token, user and tenant, with their header fields.

`RateLimit-Policy` and `RateLimit` are those of draft-ietf-httpapi-ratelimit-headers-10. Requests are counted after
they were served.
"""

import ipaddress
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from ports import clock
from tenants.domain.rate_limits import Charge, RateLimit
from tenants.services import rate_limits
from tenants.services.authentication import Visitor
from tenants.services.errors import Fix
from tenants.services.rate_limits import RateLimited
from web.http.errors import problem_response

HOUR_S = 3600
PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\d.]+):\d+")
UNCOUNTED_PATHS = ("/static/", "/health", "/ready", "/metrics")
SIGN_IN_PATHS = ("/sign-in/", "/sign-up/", "/join/", "/account/password/reset/", "/account/security/")
# Views whose POST is counted by tenant besides, with the setting that limits it.
COUNTED_VIEWS = {
    "api-invitation-list": "invitations",
    "invitation-create": "invitations",
    "api-discount-list": "coupons",
    "discounts": "coupons",
}
WHOSE = {
    "address": "This network address",
    "sign-in": "This network address",
    "token": "This token",
    "user": "This user",
    "tenant": "This tenant",
    "invitations": "This tenant",
    "coupons": "This tenant",
}
WHAT = {
    "sign-in": "sign-in, sign-up and invitation forms",
    "invitations": "invitations",
    "coupons": "attempts to redeem a code",
}


def configured_limit(name: str) -> RateLimit | None:
    """Return a limit as the settings have it; None if there is none."""
    amount, window_s = settings.RATE_LIMITS[name]
    return RateLimit(name, amount, window_s) if amount else None


def client_ip(request: HttpRequest) -> str:
    """Return the IP address of the client, as trusted proxies tell it."""
    told = [each.strip() for each in request.headers.get("X-Forwarded-For", "").split(",")]
    count = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    text = told[-count] if 0 < count <= len(told) and told[-count] else request.META.get("REMOTE_ADDR", "")
    # Some proxies name the port, too, which differs for each connection.
    with_port = PORT.fullmatch(text)
    return (with_port[1] if with_port else text).strip("[]")[:64]


def client_address(request: HttpRequest) -> str:
    """Return the address of the client; of IPv6 its network."""
    text = client_ip(request)
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if address.version == 6 and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


def _charges(wanted: dict[str, str]) -> list[Charge]:
    """Return a charge for each limit that is configured, by its name and key."""
    limits = ((configured_limit(name), key) for name, key in wanted.items())
    return [Charge(limit, key) for limit, key in limits if limit]


def address_charges(request: HttpRequest) -> list[Charge]:
    """Return what a request counts against before anybody is known."""
    wanted = {"address": (address := client_address(request))}
    if request.method == "POST" and request.path.startswith(SIGN_IN_PATHS):
        wanted["sign-in"] = address
    return _charges(wanted)


def visitor_charges(request: HttpRequest, *, tenant_id: str, token_id: str, user_id: str) -> list[Charge]:
    """Return what an authenticated request counts against besides."""
    wanted = {"token": token_id} if token_id else {"user": user_id} if user_id else {}
    if tenant_id:
        wanted["tenant"] = tenant_id
        match = request.resolver_match
        name = COUNTED_VIEWS.get(match.view_name) if match and request.method == "POST" else None
        if name:
            wanted[name] = tenant_id
    return _charges(wanted)


def require_within_limits(request: HttpRequest, visitor: Visitor) -> None:
    """Raise RateLimited if the visitor's token, sessions or tenant have sent too many requests."""
    user_id = "" if visitor.token_id else visitor.actor.id
    count_for(request, tenant_id=visitor.tenant.pk, token_id=visitor.token_id, user_id=user_id)


def count_for(request: HttpRequest, *, tenant_id: str = "", token_id: str = "", user_id: str = "") -> None:
    """Have the request counted for a token or user and a tenant, or raise RateLimited."""
    charges = visitor_charges(request, tenant_id=tenant_id, token_id=token_id, user_id=user_id)
    request.charges = charges  # type: ignore[attr-defined]
    now = clock.now()
    if exceeded := rate_limits.find_exceeded(charges, now=now):
        request.exceeds = exceeded  # type: ignore[attr-defined]
        raise limit_error(exceeded, now=now)


def limit_error(exceeded: Charge, *, now: datetime) -> RateLimited:
    """Return the problem of a caller who has used up a limit."""
    limit, wait = exceeded.limit, exceeded.limit.seconds_left(now)
    window = "hour" if limit.window_s == HOUR_S else "minute" if limit.window_s == 60 else f"{limit.window_s} seconds"
    return RateLimited(
        f"{WHOSE[limit.name]} has sent more than {limit.amount:,} {WHAT.get(limit.name, 'requests')} in this {window}."
        " Nothing was changed.",
        fix=Fix(f"Wait {wait} s, then send the request again. Ask the operators of this installation for more."),
        retry_after=wait,
        limit=limit.name,
    )


class RateLimitMiddleware:
    """Refuse requests above a limit with 429, and count the others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(UNCOUNTED_PATHS):
            return self.get_response(request)
        now, charges = clock.now(), address_charges(request)
        if exceeded := rate_limits.find_exceeded(charges, now=now):
            response = _refused_response(request, limit_error(exceeded, now=now))
            add_fields(response, [exceeded], now=now)
            return response
        response = self.get_response(request)
        if exceeded := getattr(request, "exceeds", None):
            add_fields(response, [exceeded], now=now)
            return response
        charges += getattr(request, "charges", [])
        rate_limits.count_request(charges, now=now)
        if request.path.startswith("/api/"):
            add_fields(response, charges, now=now)
        return response


def add_fields(response: HttpResponseBase, charges: Sequence[Charge], *, now: datetime) -> None:
    """Add the header fields of limits: what they are, and what remains of them."""
    if not charges:
        return
    remaining = rate_limits.remaining_requests(charges, now=now)
    response["RateLimit-Policy"] = ", ".join(
        f'"{each.limit.name}";q={each.limit.amount};w={each.limit.window_s}' for each in charges
    )
    response["RateLimit"] = ", ".join(
        f'"{each.limit.name}";r={left};t={each.limit.seconds_left(now)}'
        for each, left in zip(charges, remaining, strict=True)
    )


def _refused_response(request: HttpRequest, problem: RateLimited) -> HttpResponseBase:
    about: dict[str, Any] = {"status": problem.status, "title": problem.title, "detail": problem.detail}
    extra: dict[str, Any] = problem.extra
    if request.path.startswith("/api/"):
        return problem_response(request, code=problem.code, fix=problem.fix, **about, **extra)
    context = about | {"fix": problem.fix.text, "request_id": getattr(request, "id", "")}
    page = render(request, "errors/page.html", context, status=problem.status)
    page["Retry-After"] = str(problem.extra["retry_after"])
    return page
