"""Authentication of long-lived connections by token or portal session, from their headers."""

from http.cookies import CookieError, SimpleCookie

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.utils.crypto import constant_time_compare

from ports import clock
from tenants.domain import credentials
from tenants.models import User
from tenants.services import authentication
from tenants.services.authentication import SESSION_TENANT_KEY, Visitor
from tenants.services.errors import ProblemError
from tenants.services.sessions import SessionStore


class StreamRefused(Exception):
    """The visitor may not read any further; has the status, reason and problem."""

    def __init__(self, status: int, why: str, cause: ProblemError | None = None) -> None:
        super().__init__(why)
        self.status, self.why, self.cause = status, why, cause


class StreamUnavailable(StreamRefused):
    """The database did not answer."""


def authenticate_headers(headers: dict[str, str], *, request_id: str, tenant_id: str = "") -> Visitor:
    """Return the visitor; raise StreamRefused without a valid token or session.

    Runs in a transaction, which sees the visitor's rows from then on. A session's tenant is the one chosen
    in the portal, unless another is given.
    """
    visitor = None
    if has_token(headers):
        credential = credentials.parse_token(headers["authorization"].partition(" ")[2].strip())
        visitor = credential and authentication.authenticate_token(credential, request_id=request_id, now=clock.now())
    elif "cookie" in headers:
        visitor = _session_visitor(headers["cookie"], request_id, tenant_id)
    if not visitor:
        raise StreamRefused(401, "Send a valid token, or sign in.")
    return visitor


def has_token(headers: dict[str, str]) -> bool:
    """Return whether a bearer token is sent, which no browser does by itself."""
    return headers.get("authorization", "").partition(" ")[0].lower() == "bearer"


def _session_visitor(cookie: str, request_id: str, tenant_id: str) -> Visitor | None:
    try:
        morsel = SimpleCookie(cookie).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None
    session = SessionStore(morsel.value) if morsel else None
    user = session and User.objects.filter(pk=session.get(SESSION_KEY, ""), is_active=True).first()
    if not session or not user:
        return None
    if not constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
        return None  # the password has changed since
    return authentication.authenticate_user(
        user.pk, user.email, wanted=tenant_id or session.get(SESSION_TENANT_KEY, ""), request_id=request_id
    )
