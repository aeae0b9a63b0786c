"""The portal by keyboard: shortcuts, forms with errors, and focus during live refreshes."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import Client, override_settings
from playwright.sync_api import Browser, Page, expect

from broker.models import Gpu, GpuHealth
from broker.services.inventory import hardware
from ports import clock
from tenants.models import User
from tests.browser.portal import Portal
from tests.simulation import OPERATOR

pytestmark = pytest.mark.browser
REFRESH = """() => new Promise((settled) => {
  document.body.addEventListener('htmx:afterSettle', () => settled(true), { once: true });
  htmx.trigger(document.body, 'nudge');
})"""


@pytest.fixture(scope="module")
def operations(portal: Portal) -> Iterator[Portal]:
    """The same portal, with an operator signed in."""
    client = Client()
    operator = User.objects.create_user("watcher@example.org", is_staff=True)
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    with override_settings(OPERATORS_REQUIRE_MFA=False):
        yield replace(portal, cookie=client.cookies["sessionid"].value, complaints=[])


def refresh(page: Page) -> None:
    """Let the page refresh itself, and wait until it has."""
    assert page.evaluate(REFRESH)


@pytest.mark.parametrize(
    ("address", "control"),
    [
        ("/?whose=all", "a[aria-label='Extend fold-batch-21']"),
        ("/leases/", "a[aria-label='Extend fold-batch-21']"),
        ("/queue/", "main a:has-text('sweep-32')"),
        ("/catalogue/", "main table a"),
    ],
)
def test_a_live_refresh_keeps_the_focus(portal: Portal, chromium: Browser, address: str, control: str) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto(address)
        page.wait_for_load_state("networkidle")
        page.locator(control).first.focus()
        here = page.evaluate("window.before = document.activeElement, document.activeElement.outerHTML")
        refresh(page)
        assert page.evaluate("document.activeElement.outerHTML") == here
        assert page.evaluate("document.activeElement.isConnected && document.activeElement !== document.body")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement !== document.body"), "Tab goes on from there"
    assert portal.complaints == []


def test_a_live_refresh_of_a_lease_keeps_focus_open_dialog_and_what_is_typed(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto(f"/leases/{portal.leases['fold']}/")
        page.locator("#to-release").focus()
        refresh(page)
        assert page.evaluate("document.activeElement.id") == "to-release"
        page.keyboard.press("Enter")
        expect(page.locator("#release")).to_be_visible()
        page.locator("#release .button-quiet").focus()
        refresh(page)
        expect(page.locator("#release")).to_be_visible()
        assert page.evaluate("document.activeElement.closest('#release') !== null")
    assert portal.complaints == []


def test_question_mark_shows_the_keys_and_control_k_opens_a_page_by_name(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/spend/")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
        page.keyboard.press("Control+k")
        words = page.get_by_role("combobox", name="Page or search words")
        expect(words).to_be_focused()
        words.fill("budg")
        expect(page.get_by_role("option", name="Budgets")).to_have_attribute("aria-selected", "true")
        page.keyboard.press("Enter")
        page.wait_for_url("**/budgets/")
        page.keyboard.press("Control+k")
        page.keyboard.type("fold-batch")
        page.keyboard.press("Enter")
        page.wait_for_url("**/leases/?q=fold-batch")
        page.locator(".search-form input[type=search]").first.focus()
        page.keyboard.type("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    assert portal.complaints == []


def test_a_refused_form_keeps_its_values_and_focuses_the_first_error(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/budgets/")
        page.fill("#limit", "many")
        page.get_by_role("button", name="Save budget").click()
        expect(page.locator("#limit")).to_be_focused()
        expect(page.locator("#limit")).to_have_value("many")
        portal.complaints.clear()  # the browser notes the status of a refused form
        page.goto("/projects/")
        page.get_by_role("button", name="New project").click()
        page.locator("#new-project input[name=name]").fill("protein-design")
        page.locator("#new-project button.button-primary").click()
        expect(page.locator("#new-project")).to_be_visible()
        expect(page.locator("#new-project input[name=name]")).to_have_value("protein-design")
        expect(page.locator("#new-project input[name=name]")).to_be_focused()
        page.reload()
        expect(page.locator("#new-project")).to_be_hidden()
    assert portal.complaints == []


def test_the_launch_button_wakes_while_one_corrects_an_error(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/launch/?lasts=soon")
        button = page.locator("#quote-panel .button-large")
        expect(button).to_be_disabled()
        page.route("**/launch/quote/", lambda route: None)  # the answer never comes
        page.locator("input[name=lasts]").focus()
        page.keyboard.type("x")
        expect(button).to_be_enabled()
        page.unroute_all(behavior="ignoreErrors")


def test_bell_sentence_list_and_title_update_together(operations: Portal, chromium: Browser) -> None:
    gpu = Gpu.objects.filter(health=GpuHealth.HEALTHY).order_by("-pk")[0]
    with operations.context(chromium) as context:
        page = context.new_page()
        page.goto("/ops/")
        page.wait_for_load_state("networkidle")
        before = int(page.locator("#alerts").get_attribute("data-count") or 0)
        page.locator(".navigation a", has_text="Tenants").focus()
        hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=clock.now())
        page.evaluate("htmx.trigger(document.body, 'attend')")
        expect(page.locator("#alerts")).to_have_attribute("data-count", str(before + 1))
        noun = "item needs" if before == 0 else "items need"
        expect(page.locator("#attention-sentence")).to_contain_text(f"{before + 1} {noun} attention.")
        expect(page.locator("#needs-attention li")).to_have_count(before + 1)
        expect(page).to_have_title(f"({before + 1}) Control room · gpubroker")
        assert page.evaluate("document.activeElement.textContent.trim()") == "Tenants"
        other = context.new_page()
        other.goto("/ops/tenants/")
        expect(other.locator("#alerts")).to_have_attribute("data-count", str(before + 1))
        expect(other).to_have_title(f"({before + 1}) Tenants · gpubroker")
        hardware.set_gpu_health(gpu, GpuHealth.HEALTHY, reason="replaced", actor=OPERATOR, now=clock.now())
        other.evaluate("htmx.trigger(document.body, 'attend')")
        expect(other.locator("#alerts")).to_have_attribute("data-count", str(before))
    assert operations.complaints == []


@pytest.mark.parametrize("address", ["/?whose=all", "/leases/", "/queue/", "/catalogue/", "/budgets/", "/spend/"])
def test_a_live_refresh_keeps_an_open_menu_with_its_focus(portal: Portal, chromium: Browser, address: str) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto(address)
        page.wait_for_load_state("networkidle")
        menu = page.locator("details.menu-right")
        menu.locator("summary").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        chosen = page.evaluate("document.activeElement.textContent.trim()")
        assert chosen == "Profile"
        if page.evaluate("Boolean(document.querySelector('[hx-trigger*=nudge]'))"):
            refresh(page)
        expect(menu).to_have_attribute("open", "")
        assert page.evaluate("document.activeElement.textContent.trim()") == chosen
        page.keyboard.press("Escape")
        expect(menu).not_to_have_attribute("open", "")
    assert portal.complaints == []


def test_a_live_refresh_keeps_an_open_drawer_with_what_is_typed(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        page.goto("/leases/")
        page.wait_for_load_state("networkidle")
        page.locator("[popovertarget=api]").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#api")).to_be_visible()
        inside = page.evaluate("document.activeElement.closest('#api') !== null")
        refresh(page)
        expect(page.locator("#api")).to_be_visible()
        assert page.evaluate("document.activeElement.closest('#api') !== null") == inside
        page.locator(".search-form input").first.fill("half a na")
        refresh(page)
        expect(page.locator(".search-form input").first).to_have_value("half a na")
    assert portal.complaints == []
