"""Launch page in a browser: input, quotes and repeated submissions."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.portal import Portal

pytestmark = pytest.mark.browser
# The second press comes when the first is on its way, and its answer is not yet there.
TWICE = "button => { button.click(); setTimeout(() => button.click(), 5); }"


def test_choosing_a_model_keeps_the_input_and_puts_no_secret_into_a_url(portal: Portal, chromium: Browser) -> None:
    requests: list[str] = []
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/launch/")
        page.on("request", lambda request: requests.append(request.url))
        page.fill("[name=env]", "TOKEN=hush-hush")
        with page.expect_response("**/launch/quote/"):
            page.click("#model-all")
        page.wait_for_selector("#model-all[aria-current]")
        assert page.input_value("[name=env]") == "TOKEN=hush-hush"
        assert page.evaluate("document.activeElement.id") == "model-all"
        assert page.locator("[name=offering]:checked").count() == 1
    assert len(requests) >= 1
    assert not [address for address in requests if "hush" in address]
    assert portal.complaints == []


def test_enter_in_a_field_requests_the_quote_and_keeps_the_selection(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/launch/")
        page.click("#model-all")
        page.wait_for_selector("#model-all[aria-current]")
        with page.expect_response("**/launch/quote/"):
            page.locator("[name=offering]").last.check()
        chosen = page.locator("[name=offering]:checked").input_value()
        model = page.input_value("input[name=model]")
        page.fill("#name", "entered")
        page.press("#name", "Enter")
        page.wait_for_url("**/launch/quote/")
        assert page.locator("[name=offering]:checked").input_value() == chosen
        assert page.input_value("input[name=model]") == model
        assert page.input_value("#name") == "entered"
    assert portal.complaints == []


def test_going_back_and_submitting_again_starts_another_lease(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/launch/")
        first = launched(page, "first")
        page.go_back()
        assert launched(page, "second") != first
    assert portal.complaints == []


def test_an_open_lease_page_offers_the_action_of_the_current_state(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto(portal.pages["lease that may be stopped"])
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.locator("#stop")).to_be_visible()
        with page.expect_response(page.url, timeout=90_000):
            page.evaluate("htmx.trigger(document.body, 'nudge')")
        page.wait_for_timeout(300)
        page.get_by_role("button", name="Stop and keep volume").click()  # still there: it was being asked
        expect(page.locator("h1 .state-badge")).to_have_text("Stopped", timeout=30_000)
        page.get_by_role("button", name="Start", exact=True).click()
        page.locator("#start").get_by_role("button", name="Start").click()
        expect(page.locator("h1 .state-badge")).not_to_have_text("Stopped", timeout=30_000)


def test_double_clicking_create_creates_one_token(portal: Portal, chromium: Browser) -> None:
    sent: list[str] = []
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/tokens/")
        page.fill("[name=name]", "pressed twice")
        page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
        page.get_by_role("button", name="Create token").evaluate(TWICE)
        page.wait_for_load_state("networkidle")
        page.goto("/tokens/")
        expect(page.get_by_role("row").filter(has_text="pressed twice")).to_have_count(1)
    assert len(sent) == 1


def launched(page: Page, name: str) -> str:
    """Submit the form with a name, and return the resulting URL."""
    page.fill("#name", name)
    page.wait_for_load_state("networkidle")
    page.locator("#quote-panel .button-large").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    return page.url
