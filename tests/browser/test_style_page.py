"""Every component in a browser: accessible, within its width, CSP-safe."""

import mimetypes
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.test_pages import WIDTHS_AND_THEMES
from tests.web.ui.style_page import get_style_page

ROOT = Path(__file__).parents[2]
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
HOME = "http://portal.test"
WIDTHS = (320, 360, 768, 1024, 1440, 1920)

pytestmark = pytest.mark.browser


@pytest.fixture
def style_page(db: None) -> tuple[bytes, str]:
    """The page and its policy as the product serves them."""
    answer = get_style_page()
    return answer.content, answer["Content-Security-Policy"]


def opened(context: BrowserContext, served: tuple[bytes, str]) -> tuple[Page, list[str]]:
    """Open the page and collect what the browser complains about."""
    body, policy = served
    complaints: list[str] = []

    def answer(route: Route) -> None:
        path = re.sub(r"[?#].*", "", route.request.url.removeprefix(HOME))
        file = ROOT / path.lstrip("/")
        if path.startswith("/static/") and file.is_file():
            kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
            route.fulfill(body=file.read_bytes(), content_type=kind)
        elif path == "/styleguide/":
            route.fulfill(body=body, content_type="text/html", headers={"Content-Security-Policy": policy})
        else:
            complaints.append(f"asked for {path}")
            route.abort()

    context.route("**/*", answer)
    page = context.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{HOME}/styleguide/")
    return page, complaints


@pytest.mark.parametrize(("width", "theme"), WIDTHS_AND_THEMES)
def test_no_rule_of_accessibility_is_broken(
    chromium: Browser, style_page: tuple[bytes, str], width: int, theme: str
) -> None:
    with chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True) as context:
        page, _ = opened(context, style_page)
        page.evaluate(AXE)
        found = page.evaluate("rules => axe.run({runOnly: rules})", RULES)["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found] == []


def test_no_width_scrolls_sideways_and_no_csp_violation_occurs(
    chromium: Browser, style_page: tuple[bytes, str]
) -> None:
    with chromium.new_context() as context:
        page, complaints = opened(context, style_page)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert beyond <= 0, f"{beyond} px too wide at {width}"
        assert complaints == []


def test_drawers_menus_and_dialogs_open_without_a_script(chromium: Browser, style_page: tuple[bytes, str]) -> None:
    with chromium.new_context(viewport={"width": 390, "height": 900}, java_script_enabled=False) as context:
        page, _ = opened(context, style_page)
        page.click("a[aria-label=Menu]")
        expect(page.locator("#side")).to_be_visible()
        page.click("a[aria-label='Close the menu']")
        expect(page.locator("#side")).not_to_be_visible()
        page.click("[popovertarget=style-confirm]")
        expect(page.locator("#style-confirm >> text=Stop fold-batch-21?")).to_be_visible()
        assert not page.is_visible("[data-theme-toggle]"), "what needs a script is not shown without one"


def test_a_chosen_theme_is_applied_before_the_next_page_is_rendered(
    chromium: Browser, style_page: tuple[bytes, str]
) -> None:
    with chromium.new_context(color_scheme="light") as context:
        page, _ = opened(context, style_page)
        page.click("[data-theme-toggle]")
        page.reload(wait_until="commit")
        page.wait_for_selector("html[data-theme=dark]", state="attached")


def test_the_fleet_map_is_navigable_with_the_arrow_keys(chromium: Browser, style_page: tuple[bytes, str]) -> None:
    with chromium.new_context() as context:
        page, _ = opened(context, style_page)
        page.focus(".fleet-map a[tabindex='0']")
        heard = []
        for key in ("ArrowRight", "ArrowDown", "End", "Home", "ArrowUp"):
            page.keyboard.press(key)
            heard.append(page.evaluate("document.activeElement.getAttribute('aria-label')").split(":")[0])
        assert heard == [
            "north-1 n01 GPU 1",
            "north-1 n02 GPU 1",
            "north-1 n02 GPU 7",
            "north-1 n02 GPU 0",
            "north-1 n01 GPU 0",
        ]


def test_a_running_cost_updates_live(chromium: Browser, style_page: tuple[bytes, str]) -> None:
    with chromium.new_context() as context:
        page, _ = opened(context, style_page)
        page.evaluate("document.querySelector('[data-tick=money]').dataset.perSecond = '500'")
        page.wait_for_function("document.querySelector('[data-tick=money]').textContent > '€10'")
        assert re.fullmatch(r"€\d+\.\d\d", page.inner_text("[data-tick=money] >> nth=0"))
