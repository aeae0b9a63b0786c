"""Browsers that have signed in to an account before, by a signed cookie.

Wrong passwords from elsewhere must not lock a person out: failures are counted by account and device, or by account
and address where the device is unknown. A limit of the whole account applies to unknown devices only.
"""

import hashlib

from allauth.core.internal import ratelimit
from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase

COOKIE, SALT = "gpubroker_device", "known-device"
MAX_AGE_S = 365 * 24 * 3600
ACCOUNT_LIMIT = {"login_account": "60/h/key"}  # of one account, from all unknown devices together


def remember_device(request: HttpRequest, response: HttpResponseBase, login: str) -> None:
    """Set the cookie that says which account this browser has signed in to."""
    response.set_cookie(
        COOKIE,
        signing.dumps(_account(login), salt=SALT),
        max_age=MAX_AGE_S,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def is_known_device(request: HttpRequest, login: str) -> bool:
    """Return whether this browser has signed in to the account before."""
    try:
        known = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=MAX_AGE_S)
    except signing.BadSignature:
        return False
    return bool(known == _account(login))


def failure_key(request: HttpRequest, login: str) -> str:
    """Return what failed sign-ins are counted by: account and device, or account and address."""
    source = "known device" if is_known_device(request, login) else ratelimit.get_ip(request)
    return f"{_account(login)}:{source}"


def consume_account_limit(request: HttpRequest, login: str) -> ratelimit.RateLimitUsage | None:
    """Count a sign-in from an unknown device; return None when there were too many."""
    if is_known_device(request, login):
        return ratelimit.RateLimitUsage(usage=[])
    return ratelimit.consume(
        request, app="allauth.account", action="login_account", config=ACCOUNT_LIMIT, key=_account(login)
    )


def _account(login: str) -> str:
    return hashlib.sha256(login.strip().lower().encode()).hexdigest()[:32]
