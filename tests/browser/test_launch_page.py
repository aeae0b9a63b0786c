"""The launch page while it is filled in: what was typed stays there, and goes nowhere before one presses."""

import pytest
from playwright.sync_api import Browser

from tests.browser.portal import Portal

pytestmark = pytest.mark.browser


def test_choosing_a_model_keeps_what_was_typed_and_puts_no_secret_into_an_address(
    portal: Portal, chromium: Browser
) -> None:
    asked: list[str] = []
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/launch/")
        page.on("request", lambda request: asked.append(request.url))
        page.fill("[name=env]", "TOKEN=hush-hush")
        with page.expect_response("**/launch/*"):
            page.click("#model-all")
        page.wait_for_selector("#model-all[aria-current]")
        assert page.input_value("[name=env]") == "TOKEN=hush-hush"
        assert page.evaluate("document.activeElement.id") == "model-all"
        assert page.locator("[name=offering]:checked").count() == 1
    assert len(asked) >= 1
    assert not [address for address in asked if "hush" in address]
    assert portal.complaints == []
