"""Layout figures of an open page."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.portal import Portal

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("address", ["/", "/leases/", "/queue/"])
def test_the_navigation_counts_update_with_the_page_and_keep_the_focus(
    portal: Portal, chromium: Browser, address: str
) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto(address)
        before = int(page.locator("#count-leases").inner_text())
        other = context.new_page()
        other.goto("/launch/")
        other.fill("#name", f"counted-{before}")
        other.wait_for_load_state("networkidle")
        other.locator("#quote-panel .button-large").click()
        expect(other.get_by_role("heading", name=f"counted-{before}")).to_be_visible()
        page.bring_to_front()
        page.locator(".navigation a", has_text="Team").focus()
        page.evaluate("htmx.trigger(document.body, 'nudge')")
        expect(page.locator("#count-leases")).to_have_text(str(before + 1))
        assert page.evaluate("document.activeElement.textContent.trim()") == "Team"
        assert page.locator("#count-leases, #count-queue, #meters").count() == 3
    assert portal.complaints == []
