"""Sign-in with the company's OpenID Connect server."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.db import connection
from django.test import Client

from ports import http
from tenants.models import User
from tests.database import OwnDatabase

SERVER = "https://id.example.org/realms/kestrel"
LOGIN = "/account/company/oidc/company/login/"
PROVIDER = {
    "provider_id": "company",
    "name": "Kestrel",
    "client_id": "gpubroker",
    "secret": "not a secret",
    "settings": {"server_url": SERVER},
}
PERSON = {"sub": "k-1", "email": "ada@kestrel.example", "email_verified": True, "name": "Ada"}
ServerRequests = list[tuple[str, bool]]
Server = Callable[[httpx.Request], httpx.Response]


def kestrel(request: httpx.Request) -> httpx.Response:
    """Answer as an OpenID Connect server does."""
    address = f"{request.url.scheme}://{request.url.host}"
    if "openid-configuration" in request.url.path:
        ends = ("authorization", "token", "userinfo")
        return httpx.Response(200, json={f"{end}_endpoint": f"{address}/{end}" for end in ends})
    if request.url.path == "/token":
        assert parse_qs(request.content.decode())["code"] == ["c0de"]
        return httpx.Response(200, json={"access_token": "t", "token_type": "Bearer"})
    assert request.headers["Authorization"] == "Bearer t"
    return httpx.Response(200, json=PERSON)


@pytest.fixture
def company_server(own_database: OwnDatabase, settings: Any, monkeypatch: pytest.MonkeyPatch) -> ServerRequests:
    """Enable company sign-in; return its requests and open transactions."""
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [PROVIDER]}}
    settings.ROOT_URLCONF = "tests.web.portal.account.company_urls"
    return answering(kestrel, monkeypatch)


def answering(server: Server, monkeypatch: pytest.MonkeyPatch) -> ServerRequests:
    seen: ServerRequests = []

    def hear(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.path, connection.in_atomic_block))
        return server(request)

    monkeypatch.setattr(http, "client", lambda: httpx.Client(transport=httpx.MockTransport(hear)))
    return seen


def sign_in_with_company(browser: Client) -> Any:
    """Start the sign-in, and return from the company's server with its code."""
    there = browser.post(LOGIN)
    assert there.status_code == 302, there.content
    assert there["Location"].startswith("https://id.example.org/authorization?")
    state = parse_qs(urlsplit(there["Location"]).query)["state"][0]
    return browser.get(f"{LOGIN}callback/", {"code": "c0de", "state": state})


def test_no_transaction_is_open_during_requests_to_the_openid_server(company_server: ServerRequests) -> None:
    browser = Client()
    assert sign_in_with_company(browser).status_code == 302
    assert [path for path, _ in company_server if "openid-configuration" not in path] == ["/token", "/userinfo"]
    assert len(company_server) >= 3
    assert [path for path, open_ in company_server if open_] == []
    user = User.objects.get(email="ada@kestrel.example")
    assert browser.session["_auth_user_id"] == user.pk
    assert SocialAccount.objects.get().user == user


def test_signing_in_again_opens_the_same_account(company_server: ServerRequests) -> None:
    sign_in_with_company(Client())
    browser = Client()
    sign_in_with_company(browser)
    assert browser.session["_auth_user_id"] == User.objects.get().pk


@pytest.mark.parametrize("says", [{"email_verified": False}, {}])
def test_an_unverified_address_must_be_confirmed_by_email(
    company_server: ServerRequests, monkeypatch: pytest.MonkeyPatch, mailoutbox: list[Any], says: dict[str, bool]
) -> None:
    monkeypatch.delitem(PERSON, "email_verified")
    for key, said in says.items():
        monkeypatch.setitem(PERSON, key, said)
    browser = Client()
    sign_in_with_company(browser)
    assert "_auth_user_id" not in browser.session
    (letter,) = mailoutbox
    assert letter.to == ["ada@kestrel.example"]
    (link,) = re.findall(r"https?://\S+/account/confirm-email/\S+", str(letter.body))
    browser.post(urlsplit(link).path)
    assert EmailAddress.objects.get().verified
    again = Client()
    sign_in_with_company(again)
    assert again.session["_auth_user_id"] == User.objects.get().pk


@pytest.mark.parametrize("vouched", [True, False])
def test_an_address_of_an_existing_account_does_not_sign_in_to_it(
    company_server: ServerRequests, monkeypatch: pytest.MonkeyPatch, vouched: bool
) -> None:
    ada = User.objects.create_user("ada@kestrel.example", "a long enough phrase 4711")
    EmailAddress.objects.create(user=ada, email=ada.email, verified=True, primary=True)
    monkeypatch.setitem(PERSON, "email_verified", vouched)
    browser = Client()
    sign_in_with_company(browser)
    assert "_auth_user_id" not in browser.session
    assert not SocialAccount.objects.exists()
    assert User.objects.get() == ada


def test_a_failed_first_sign_in_stores_no_user(company_server: ServerRequests, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("broken off in the middle")

    monkeypatch.setattr(EmailAddress, "save", refuse)
    monkeypatch.setattr(EmailAddress.objects, "bulk_create", refuse)
    with pytest.raises(RuntimeError, match="in the middle"):
        sign_in_with_company(Client())
    assert (User.objects.count(), SocialAccount.objects.count()) == (0, 0)


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no route")


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (unreachable, "could not be reached"),
        (lambda _: httpx.Response(500), "returned status 500"),
        (
            lambda _: httpx.Response(200, content=b"<", headers={"content-type": "application/json"}),
            "not valid JSON",
        ),
    ],
)
def test_an_unreachable_or_faulty_openid_server_returns_503_with_the_reason(
    company_server: ServerRequests, monkeypatch: pytest.MonkeyPatch, server: Server, why: str
) -> None:
    answering(server, monkeypatch)
    answer = Client().post(LOGIN)
    assert answer.status_code == 503
    assert why in answer.content.decode()


def test_a_code_refused_by_the_openid_server_does_not_sign_in(
    company_server: ServerRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wary(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/token":
            return httpx.Response(400, json={"error": "invalid_grant"})
        return kestrel(request)

    answering(wary, monkeypatch)
    browser = Client()
    answer = sign_in_with_company(browser)
    assert "Not signed in" in answer.content.decode()
    assert "_auth_user_id" not in browser.session
    assert not User.objects.exists()
