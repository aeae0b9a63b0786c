"""Create and use a passkey in a browser."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.portal import EMAIL, PASSWORD, Portal

pytestmark = pytest.mark.browser
SCRIPTS = "**/mfa/js/webauthn*.js"
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@contextmanager
def visitor(portal: Portal, chromium: Browser, *, willing: bool = True) -> Iterator[Page]:
    """Open a browser with a fingerprint reader that accepts or not."""
    with portal.context(chromium, signed_in=False) as context:
        page = context.new_page()
        wire = context.new_cdp_session(page)
        wire.send("WebAuthn.enable")
        wire.send("WebAuthn.addVirtualAuthenticator", {"options": {**AUTHENTICATOR, "isUserVerified": willing}})
        yield page


def by_password(page: Page) -> None:
    page.goto("/sign-in/")
    page.fill("[name=login]", EMAIL)
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")


def test_a_created_passkey_signs_in_without_a_password(portal: Portal, chromium: Browser) -> None:
    with visitor(portal, chromium) as page:
        by_password(page)
        expect(page.get_by_role("heading", name="Home")).to_be_visible()
        page.goto("/account/security/webauthn/add/")
        page.fill("[name=password]", PASSWORD)  # asked once more, before anything that opens the account is made
        page.get_by_role("button", name="Continue").click()
        page.fill("[name=name]", "My laptop")
        page.check("[name=passwordless]")
        page.get_by_role("button", name="Add key").click()
        page.wait_for_url(re.compile("/account/security/(?!webauthn/add)"))
        page.goto("/account/security/webauthn/")
        expect(page.get_by_role("listitem").filter(has_text="My laptop")).to_contain_text("passkey")

        page.context.clear_cookies()
        page.goto("/")
        page.get_by_role("button", name="Continue with a passkey").click()
        expect(page.get_by_role("heading", name="Home")).to_be_visible()

        page.context.clear_cookies()
        by_password(page)  # which now is one factor of two
        expect(page.get_by_role("heading", name="Two-factor authentication")).to_be_visible()
        page.get_by_role("button", name="Use a security key").click()
        expect(page.get_by_role("heading", name="Home")).to_be_visible()
    assert portal.complaints == []


def test_a_passkey_button_waits_until_its_scripts_are_loaded(portal: Portal, chromium: Browser) -> None:
    with visitor(portal, chromium, willing=False) as page:
        held: list[Route] = []
        page.route(SCRIPTS, lambda route: held.append(route))
        page.goto("/sign-in/", wait_until="commit")
        button = page.get_by_role("button", name="Continue with a passkey")
        expect(button).to_be_disabled()
        for route in held:
            route.continue_()
        page.unroute(SCRIPTS)
        button.click()
        expect(page.get_by_role("alert")).to_contain_text("No passkey was used")
    assert portal.complaints == []


def test_a_missing_passkey_shows_an_alert_above_the_button(portal: Portal, chromium: Browser) -> None:
    with visitor(portal, chromium, willing=False) as page:
        page.goto("/sign-in/")
        for _ in range(2):
            page.get_by_role("button", name="Continue with a passkey").click()
            expect(page.get_by_role("alert")).to_contain_text("No passkey was used")
        assert page.get_by_role("alert").count() == 1
    assert portal.complaints == []


def test_the_ip_address_redirects_to_the_host_name_for_passkeys(portal: Portal, chromium: Browser) -> None:
    with visitor(portal, chromium) as page:
        page.goto(f"{portal.url.replace('localhost', '127.0.0.1')}/sign-in/")
        assert page.url == f"{portal.url}/sign-in/"


def test_at_an_ip_address_the_password_works_and_the_passkey_button_names_the_host(
    portal: Portal, chromium: Browser
) -> None:
    address = portal.url.replace("localhost", "127.0.0.1")
    proxy = {"X-Forwarded-For": "192.0.2.7"}  # nobody is led away from what a proxy passes on
    with portal.context(chromium, signed_in=False, extra_http_headers=proxy) as context:
        page = context.new_page()
        page.goto(f"{address}/sign-in/")
        page.get_by_role("button", name="Continue with a passkey").click()
        expect(page.get_by_role("alert")).to_contain_text(f"not at 127.0.0.1. Open {portal.url} instead.")
        page.fill("[name=login]", EMAIL)
        page.fill("[name=password]", PASSWORD)
        page.press("[name=password]", "Enter")
        expect(page.get_by_role("heading", name=re.compile("Home|Two-factor authentication"))).to_be_visible()
        assert page.url.startswith(address)
