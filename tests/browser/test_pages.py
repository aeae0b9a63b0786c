"""Every tenant page in both themes and all widths: accessible and CSP-safe."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from billing.gateways.simulated import SimulatedGateway
from ports import clock, payments
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.rls import tenant_scope
from tests.billing.topups.topup_setup import process_topup, request_topup
from tests.browser.portal import Portal
from tests.tiers import by_fifths, take_fifth

pytestmark = pytest.mark.browser
AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
WIDTHS = (320, 360, 768, 1024, 1440, 1920)
WIDTHS_AND_THEMES = [(1440, "light"), (390, "dark"), (1440, "dark"), (390, "light")]


@by_fifths  # a page takes seconds
@pytest.mark.parametrize(("width", "theme"), WIDTHS_AND_THEMES)
def test_no_rule_of_accessibility_is_broken(
    portal: Portal, chromium: Browser, width: int, theme: str, fifth: int
) -> None:
    found = []
    viewport = {"width": width, "height": 900}
    with portal.context(chromium, viewport=viewport, color_scheme=theme, bypass_csp=True) as context:
        page = context.new_page()
        for name, address in take_fifth(portal.pages.items(), fifth):
            page.goto(address)
            page.evaluate("scrollTo(0, 0)")  # a form with an error is scrolled to it, under the bar at the foot
            page.evaluate(AXE)
            broken = page.evaluate("rules => axe.run({runOnly: rules})", RULES)["violations"]
            found += [(name, rule["id"], rule["nodes"][0]["html"][:300]) for rule in broken]
    assert found == []


@by_fifths
def test_no_width_scrolls_sideways_and_no_csp_violation_occurs(portal: Portal, chromium: Browser, fifth: int) -> None:
    wide = []
    with portal.context(chromium) as context:
        page = context.new_page()
        for name, address in take_fifth(portal.pages.items(), fifth):
            page.goto(address)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                wide += [(name, width, beyond)] if beyond > 0 else []
    assert wide == []
    assert portal.complaints == []


def test_no_column_of_the_offerings_is_cut_at_any_width(portal: Portal, chromium: Browser) -> None:
    cut = []
    with portal.context(chromium) as context:
        page = context.new_page()
        for address in ("/launch/", "/launch/?model=all"):
            page.goto(address)
            for width in (*range(360, 1921, 40), 390, 768, 1024, 1279, 1281, 1399, 1401):
                page.set_viewport_size({"width": width, "height": 900})
                beyond = page.locator(".offerings").evaluate("box => box.scrollWidth - box.clientWidth")
                cut += [(address, width, beyond)] if beyond > 0 else []
    assert cut == []


def test_the_first_visit_loads_less_than_100_kb(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium) as context:
        page = context.new_page()
        sizes: dict[str, int] = {}
        page.on("requestfinished", lambda done: sizes.__setitem__(done.url, done.sizes()["responseBodySize"]))
        page.goto("/")
        page.wait_for_load_state("networkidle")
        assert sum(sizes.values()) <= 100_000, sizes


def test_confirmation_panels_keep_a_distance_to_their_edge(portal: Portal, chromium: Browser) -> None:
    near = []
    with portal.context(chromium, viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        for name in ("extend", "release", "stop", "start", "volume to delete"):
            page.goto(portal.pages[name])
            panel = page.locator(".panel.confirmation")
            room = panel.evaluate(
                "box => Math.min(...[...box.querySelectorAll('p, dl, .button')].map("
                "each => each.getBoundingClientRect().left - box.getBoundingClientRect().left))"
            )
            near += [(name, room)] if room < 12 else []
    assert near == []


def test_a_phone_shows_every_amount_of_an_invoice(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium, viewport={"width": 340, "height": 844}) as context:
        page = context.new_page()
        page.goto(portal.pages["invoice explained"])
        beyond = page.locator(".table-scroll:has(.grand-total)").evaluate_all(
            "boxes => boxes.map(box => box.scrollWidth - box.clientWidth)"
        )
        assert beyond == [0, 0]
        hidden = page.evaluate(
            "() => [...document.querySelectorAll('.table .money, .drawer td')]"
            ".filter(cell => cell.checkVisibility())"
            ".filter(cell => cell.getBoundingClientRect().right > innerWidth).map(cell => cell.textContent)"
        )
        assert hidden == []
        assert all(page.locator(".table .grand-total .money").nth(n).is_visible() for n in range(2))


def test_long_names_stay_in_their_column_and_addresses_in_one_line(portal: Portal, chromium: Browser) -> None:
    operator, tenant, now = (
        Actor("staff", "usr_operator", "operator@gpubroker.example"),
        portal.owner.tenant,
        clock.now(),
    )
    with payments.using_gateway(SimulatedGateway()):
        process_topup(request_topup(portal.owner, 5000, now=now), now=now)
    with tenant_scope(tenant.pk):
        audit.record("tenant.change", tenant, actor=operator, now=now)
    with portal.context(chromium, viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto("/statement/")
        beyond = page.locator("tbody th").evaluate_all(
            "cells => cells.filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"
        )
        assert beyond == []
        page.goto("/audit/")
        heights = page.get_by_role("link", name=operator.label).evaluate_all(
            "links => links.map(each => each.offsetHeight)"
        )
        assert heights
        assert max(heights) < 24, "an address is broken into two lines"


def test_a_button_beside_fields_stands_at_their_foot(portal: Portal, chromium: Browser) -> None:
    with portal.context(chromium, viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto("/statement/")
        feet = (
            page.locator("form:has(#from)")
            .locator(".input, .button")
            .evaluate_all("parts => parts.map(each => each.getBoundingClientRect().bottom)")
        )
        assert len(feet) == 3
        assert len(set(feet)) == 1
