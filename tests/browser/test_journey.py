"""The main journey in a browser: sign in, launch, extend, release, invoice."""

import re
import time

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.portal import EMAIL, PASSWORD, Portal, stream

pytestmark = pytest.mark.browser
SOON = 60_000


def test_a_lease_is_launched_extended_released_and_explained_on_the_invoice(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium, signed_in=False) as context:
        page = context.new_page()
        page.goto("/")
        page.fill("[name=login]", EMAIL)
        page.fill("[name=password]", PASSWORD)
        page.press("[name=password]", "Enter")
        expect(page.get_by_role("heading", name="Home")).to_be_visible()

        page.wait_for_load_state()
        page.keyboard.press("n")
        expect(page.get_by_role("heading", name="Launch", exact=True)).to_be_visible()
        page.check("input[aria-label^='H100 SXM 80GB 1g.10gb']")
        expect(page.locator("#quote-panel .figure-large")).to_have_text("€1.00/h")
        page.fill("#lasts", "90 min")
        expect(page.locator("#quote-panel .button-large")).to_have_text(re.compile("max €1.50"))
        page.fill("#name", "from-the-browser")
        page.locator("#quote-panel .button-large").click()

        expect(page.get_by_role("heading", name="from-the-browser")).to_be_visible()
        expect(page.locator("h1 .state-badge")).to_have_text("Active")
        address = page.url

        page.get_by_role("button", name="Extend", exact=True).click()
        page.get_by_role("button", name="Extend 2 h").click()
        expect(page.locator("#toasts")).to_contain_text("is extended by 2 h")
        page.wait_for_timeout(1500)  # by now it listens, and has asked for itself anew
        assert "is extended by 2 h" in page.locator("#toasts").inner_text()
        assert page.url == address

        page.get_by_role("button", name="Release", exact=True).click()
        page.get_by_role("button", name="Release and stop charging").click()
        expect(page.locator("h1 .state-badge")).to_have_text("Released")

        portal.bill()
        page.goto("/invoices/")
        page.get_by_role("link", name=re.compile(r"\w+ 20\d\d")).first.click()
        line = page.locator("tr", has_text="Kestrel Bio ·").filter(has_text="H100 SXM 80GB 1g.10gb")
        line.filter(has_text="on-demand").get_by_role("link").click()
        expect(page.get_by_text("recalculated, matches")).to_be_visible()
        expect(page.locator(".drawer:not([popover])")).to_contain_text("from-the-browser")
        assert portal.complaints == []


def test_a_lease_is_launched_and_released_without_scripts(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/launch/")
        page.check("input[aria-label^='H100 SXM 80GB 2g.20gb']")
        page.fill("#lasts", "2 h")
        page.get_by_role("button", name="Refresh quote").click()
        expect(page.locator("#quote-panel .figure-large")).to_have_text("€2.00/h")
        expect(page.locator("#quote-panel .button-large")).to_have_text(re.compile("max €4.00"))
        page.fill("#name", "without-a-script")
        page.locator("#quote-panel .button-large").click()
        expect(page.get_by_role("heading", name="without-a-script")).to_be_visible()
        until(page, "Active")
        page.get_by_role("button", name="Release", exact=True).click()
        page.get_by_role("button", name="Release and stop charging").click()
        until(page, "Released")


def until(page: Page, state: str) -> None:
    """Reload until the lease is in a state, without scripts."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if page.locator("h1 .state-badge").inner_text() == state:
            return
        page.wait_for_timeout(200)
        page.reload()
    raise AssertionError(f"still {page.locator('h1 .state-badge').inner_text()}")


def test_double_clicking_launch_starts_one_lease(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/launch/")
        page.fill("#name", "pressed-twice")
        page.wait_for_load_state("networkidle")
        page.locator("#quote-panel .button-large").dblclick()
        expect(page.get_by_role("heading", name="pressed-twice")).to_be_visible()
        page.goto("/leases/?q=pressed-twice&state=all")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("link", name="Release pressed-twice").click()
        page.get_by_role("button", name=re.compile("Release|Cancel request")).last.click()


def test_an_event_refreshes_the_open_page(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        remaining = iter(["retry: 5000\n\n", "event: lease.active\ndata: {}\n\n"])  # on coming back
        context.route("**/api/v1/events/stream", lambda route: stream(route, portal.url, next(remaining, "")))
        page = context.new_page()
        requests: list[Request] = []
        page.on("request", lambda request: requests.append(request) if again(request) else None)
        page.goto(f"/leases/{portal.leases['fold']}/")
        ends = time.monotonic() + SOON / 2000  # the second request may come while the page still loads
        while len(requests) < 2 and time.monotonic() < ends:
            page.wait_for_timeout(100)
        assert len(requests) >= 2


def again(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def test_a_page_refreshes_when_its_event_stream_opens(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        with page.expect_request(again, timeout=SOON / 2):  # sooner than the page asks by itself
            page.goto(f"/leases/{portal.leases['fold']}/")


def test_the_open_catalogue_updates_its_free_counts(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page, other = context.new_page(), context.new_page()
        page.goto("/catalogue/")
        free = page.locator("#offers tr", has_text="1g.10gb").first.locator(".state-badge")
        before = free.inner_text()
        page.locator("#offers .button").first.focus()
        here = page.evaluate("document.activeElement.id")
        other.goto("/launch/")
        other.check("input[aria-label^='H100 SXM 80GB 1g.10gb']")
        other.fill("#name", "beside-the-catalogue")
        other.locator("#quote-panel .button-large").click()
        expect(free).not_to_have_text(before, timeout=SOON)
        assert page.evaluate("document.activeElement.id") == here
        other.get_by_role("button", name="Release", exact=True).click()
        other.get_by_role("button", name=re.compile("Release|Cancel request")).last.click()
        # A browser that is closed in the middle of a navigation may never say that it is.
        other.wait_for_url(re.compile(r"/leases/[^/]+/$"))


def test_costs_on_an_open_page_update_live(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/?whose=all")
        growing = page.locator("tr", has_text="chat").locator("[data-tick=money]")
        before = growing.inner_text()
        expect(growing).not_to_have_text(before)


def test_the_seconds_of_a_running_lease_update_live(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto(f"/leases/{portal.leases['fold']}/")
        growing = page.locator("[data-tick=seconds]")
        before = growing.inner_text()
        expect(growing).not_to_have_text(before)
        expect(growing).to_have_text(re.compile(r"^[\d,]+ s$"))


def test_keyboard_shortcuts_open_search_launch_and_the_skip_link(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/")
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_text("Skip to content")
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        page.keyboard.press("/")
        expect(page.locator(".search-form input")).to_be_focused()
        page.keyboard.type("fold")
        page.keyboard.press("Enter")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.wait_for_load_state()
        page.keyboard.press("n")
        expect(page.get_by_role("heading", name="Launch", exact=True)).to_be_visible()
