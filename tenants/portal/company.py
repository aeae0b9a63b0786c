"""Signing in at a company's own OpenID Connect server: allauth's steps, over the product's one HTTP client.

These addresses stand outside the wall's transaction (wall.py), for the company's server may take its time.
"""

from typing import Any, Self

from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.db import transaction
from django.http import HttpRequest

from ports import web
from tenants.services.refusals import Refused


class CompanySilent(Refused):
    code, status, title = "company-sign-in", 503, "Your company's sign-in gave no answer"


class CompanyAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """allauth's adapter: its way out is ours, and a new person is kept whole or not at all."""

    def get_requests_session(self) -> "Line":
        return Line()

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        with transaction.atomic():
            return super().save_user(request, sociallogin, form)


class Line:
    """What allauth takes for a session of `requests`."""

    def __enter__(self) -> Self:
        self._client = web.client()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, url: str, *, headers: dict[str, str] | None = None) -> Any:
        """Fetch what must be there: the server's description, its keys, who somebody is."""
        answer = self.request("GET", url, headers=headers)
        if not answer.is_success:
            raise _silent(f"it answered {answer.status_code}")
        return answer

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Any = None,
        data: Any = None,
        headers: Any = None,
        auth: Any = None,
    ) -> Any:
        """Send a request; an answer that says no is allauth's to read."""
        login = (auth.username, auth.password) if auth else None
        try:
            answer = self._client.request(method, url, params=params, data=data, headers=headers, auth=login)
            if answer.is_success and "json" in answer.headers.get("content-type", ""):
                answer.json()
        except web.Failed as failure:
            raise _silent("it could not be reached, or took too long") from failure
        except ValueError as failure:
            raise _silent("it answered something that is not JSON") from failure
        return answer


def _silent(why: str) -> CompanySilent:
    return CompanySilent(
        f"We asked your company's server who you are, but {why}. Nobody was signed in.",
        fix="Try again in a minute; if it stays, tell whoever runs your company's sign-in.",
    )
