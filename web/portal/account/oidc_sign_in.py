"""Sign-in at a company's OpenID Connect server: allauth over our HTTP client.

These URLs run outside the request's transaction (middleware.py), since the company's server
may be slow.
"""

from typing import Any, Self

from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from ports import http
from tenants.domain.mailboxes import mailbox_of
from tenants.services.errors import ProblemError


class CompanySignInUnavailable(ProblemError):
    code, status, title = "company-sign-in", 503, "Your company's sign-in did not respond"


class CompanyAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """allauth adapter: uses our HTTP client, and saves a new user atomically."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Let everybody in whom the company signs in; who may create tenants is decided elsewhere."""
        return True

    def get_requests_session(self) -> "OidcHttpSession":
        return OidcHttpSession()

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        sociallogin.user.mailbox = mailbox_of(sociallogin.user.email)
        with transaction.atomic():
            return super().save_user(request, sociallogin, form)


class OidcHttpSession:
    """Replacement for the `requests` session that allauth expects."""

    def __enter__(self) -> Self:
        self._client = http.client()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, url: str, *, headers: dict[str, str] | None = None) -> Any:
        """Fetch what must exist: the server's metadata, its keys, the user's profile."""
        answer = self.request("GET", url, headers=headers)
        if not answer.is_success:
            raise _unavailable(_("it returned status {status_code}").format(status_code=answer.status_code))
        return answer

    def request(
        self, method: str, url: str, *, params: Any = None, data: Any = None, headers: Any = None, auth: Any = None
    ) -> Any:
        """Send a request; allauth interprets an error response itself."""
        login = (auth.username, auth.password) if auth else None
        try:
            answer = self._client.request(method, url, params=params, data=data, headers=headers, auth=login)
            if answer.is_success and "json" in answer.headers.get("content-type", ""):
                answer.json()
        except http.HttpFailed as failure:
            raise _unavailable(_("it could not be reached or timed out")) from failure
        except ValueError as failure:
            raise _unavailable(_("its response was not valid JSON")) from failure
        return answer


def _unavailable(why: str) -> CompanySignInUnavailable:
    return CompanySignInUnavailable(
        _("We could not verify you with your company's sign-in server: {why}. You were not signed in.").format(why=why),
        fix=_("Try again in a minute. If it keeps failing, contact the administrator of your company's sign-in."),
    )
