"""Two-factor authentication with an authenticator app."""

import re
import time
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from cryptography.fernet import Fernet
from django.core.cache import cache
from django.core.management import call_command

from tenants.models import User
from tenants.services import second_factors
from tests.tenants.tenant_setup import TenantWithOwner
from tests.web.portal.account.test_sign_in import PASSWORD, AnonymousBrowser, sign_in, with_password

pytestmark = pytest.mark.django_db
SECURITY, ASKED = "/account/security/", "/account/security/authenticate/"
NOON = 1_800_000_000.0


@pytest.fixture(autouse=True)
def watch(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock, because a code is valid once per half minute."""
    hand = [NOON]
    monkeypatch.setattr("allauth.mfa.totp.internal.auth.time", Watch(hand))
    cache.clear()
    return hand


class Watch:
    def __init__(self, hand: list[float]) -> None:
        self.hand = hand

    def time(self) -> float:
        return self.hand[0]


@pytest.fixture
def delta() -> TenantWithOwner:
    return with_password("Delta")


@pytest.fixture
def secret(delta: TenantWithOwner) -> str:
    """Set up the authenticator app, and return its secret."""
    browser = AnonymousBrowser()
    assert sign_in(browser, delta.owner.email)["Location"] == "/"
    assert browser.get(f"{SECURITY}totp/activate/")["Location"].startswith("/account/reauthenticate/")
    browser.post("/account/reauthenticate/", {"password": PASSWORD})
    page = browser.get(f"{SECURITY}totp/activate/").content.decode()
    found = re.search(r'id="secret" value="([A-Z2-7]+)"', page)
    assert found, page
    refused = browser.post(f"{SECURITY}totp/activate/", {"code": wrong(found[1], NOON)})
    assert refused.status_code == 200
    assert not Authenticator.objects.exists()
    browser.post(f"{SECURITY}totp/activate/", {"code": code(found[1], NOON)})
    assert Authenticator.objects.filter(user=delta.owner, type="totp").exists()
    return found[1]


def code(secret: str, at: float) -> str:
    return str(format_hotp_value(hotp_value(secret, int(at) // 30)))


def wrong(secret: str, at: float) -> str:
    return f"{(int(code(secret, at)) + 1) % 1_000_000:06d}"


def test_the_seeds_are_stored_encrypted(secret: str, delta: TenantWithOwner) -> None:
    for factor in Authenticator.objects.filter(user=delta.owner):
        assert secret not in str(factor.data)
        (seed,) = (factor.data[name] for name in ("secret", "seed") if name in factor.data)
        assert seed.startswith(second_factors.PREFIX)


def test_seeds_are_encrypted_with_the_newest_key(secret: str, delta: TenantWithOwner, settings: Any) -> None:
    factor = Authenticator.objects.get(user=delta.owner, type="totp")
    Authenticator.objects.filter(pk=factor.pk).update(data={"secret": secret})  # as it was stored before
    newest = Fernet.generate_key().decode()
    settings.CREDENTIAL_ENCRYPTION_KEYS = f"{newest},{settings.CREDENTIAL_ENCRYPTION_KEYS}"
    call_command("reencrypt_secrets", stdout=StringIO())
    settings.CREDENTIAL_ENCRYPTION_KEYS = newest
    factor.refresh_from_db()
    assert secret not in str(factor.data)
    assert second_factors.decrypt_seed(factor.data["secret"]) == secret
    browser = AnonymousBrowser()
    assert sign_in(browser, delta.owner.email)["Location"] == ASKED
    browser.post(ASKED, {"code": code(secret, NOON + 60)})


def is_signed_in(browser: AnonymousBrowser) -> bool:
    """Return whether the browser is signed in."""
    answer: Any = browser.get("/projects/")
    return bool(answer.status_code == 200)


@pytest.mark.deep
def test_with_a_second_factor_the_password_alone_does_not_sign_in(
    delta: TenantWithOwner, secret: str, watch: list[float]
) -> None:
    browser = AnonymousBrowser()
    assert sign_in(browser, delta.owner.email)["Location"].startswith(ASKED)
    assert not is_signed_in(browser)
    watch[0] += 30
    assert browser.post(ASKED, {"code": wrong(secret, watch[0])}).status_code == 200
    assert browser.post(ASKED, {"code": code(secret, NOON)}).status_code == 200  # half a minute old
    assert not is_signed_in(browser)
    assert browser.post(ASKED, {"code": code(secret, watch[0])})["Location"] == "/"
    assert is_signed_in(browser)


@pytest.mark.deep
def test_a_totp_code_works_only_once(delta: TenantWithOwner, secret: str, watch: list[float]) -> None:
    watch[0] += 30
    for browser, lets_in in ((AnonymousBrowser(), True), (AnonymousBrowser(), False)):
        sign_in(browser, delta.owner.email)
        browser.post(ASKED, {"code": code(secret, watch[0])})
        assert is_signed_in(browser) is lets_in


@pytest.mark.deep
def test_a_recovery_code_replaces_the_totp_code_once(delta: TenantWithOwner, secret: str) -> None:
    spare = Authenticator.objects.get(user=delta.owner, type="recovery_codes").wrap().get_unused_codes()[0]
    for browser, lets_in in ((AnonymousBrowser(), True), (AnonymousBrowser(), False)):
        sign_in(browser, delta.owner.email)
        browser.post(ASKED, {"code": spare})
        assert is_signed_in(browser) is lets_in


@pytest.mark.deep
def test_a_totp_code_without_a_password_is_redirected_to_sign_in(delta: TenantWithOwner, secret: str) -> None:
    browser = AnonymousBrowser()
    assert browser.post(ASKED, {"code": code(secret, time.time())})["Location"].startswith("/sign-in/")
    assert not is_signed_in(browser)


@pytest.mark.deep
def test_the_security_page_offers_totp_passkey_and_recovery_codes(delta: TenantWithOwner, secret: str) -> None:
    browser = AnonymousBrowser()
    assert "Continue with a passkey" in browser.get("/sign-in/").content.decode()
    browser.force_login(delta.owner)
    page = browser.get(SECURITY).content.decode()
    assert all(words in page for words in ("Remove the app", "Add a passkey", "Generate new codes"))
    browser.force_login(User.objects.create_user("alone@example.org"))
    assert "Set up the app" in browser.get(SECURITY).content.decode()


@pytest.mark.deep
def test_operator_pages_and_api_require_a_second_factor(
    delta: TenantWithOwner, secret: str, watch: list[float], settings: Any
) -> None:
    settings.OPERATORS_REQUIRE_MFA = True
    User.objects.filter(pk=delta.owner.pk).update(is_staff=True)
    watch[0] += 30
    operator, bare = AnonymousBrowser(), AnonymousBrowser()
    sign_in(operator, delta.owner.email)
    operator.post(ASKED, {"code": code(secret, watch[0])})
    bare.force_login(User.objects.create_user("bare@example.org", is_staff=True))
    page, call = "/ops/tenants/", "/api/v1/ops/tenants"
    assert [operator.get(page).status_code, operator.get(call).status_code] == [200, 200]
    assert bare.get(page)["Location"] == SECURITY
    assert bare.get(call).status_code == 404
