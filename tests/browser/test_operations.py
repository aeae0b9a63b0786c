"""Operators' pages in a browser: accessible, by keyboard, without scripts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.test import Client, override_settings
from playwright.sync_api import Browser, Page, expect

from billing.services.ledger.invariant_checks import ALL_INVARIANTS
from broker.models import Allocation, Gpu, GpuHealth, Node, Offering
from broker.services.inventory import hardware
from ports import clock
from tenants.models import User
from tenants.services.rls import staff_scope
from tests.browser.portal import Portal
from tests.browser.test_pages import AXE, RULES, WIDTHS, WIDTHS_AND_THEMES
from tests.simulation import OPERATOR
from tests.tiers import by_fifths, take_fifth

pytestmark = pytest.mark.browser
MAP = ".fleet-map a"


@pytest.fixture(scope="module")
def operations(portal: Portal) -> Iterator[Portal]:
    """The same portal, with an operator signed in."""
    client = Client()
    operator = User.objects.create_user("operator@example.org", is_staff=True)
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    with override_settings(OPERATORS_REQUIRE_MFA=False):
        yield replace(portal, cookie=client.cookies["sessionid"].value, complaints=[])


def addresses(portal: Portal) -> dict[str, str]:
    node, gpu = Node.objects.all()[0], Gpu.objects.all()[0]
    return {
        "control room": "/ops/",
        "by tenant": "/ops/?by=tenant",
        "clusters": "/ops/clusters/",
        "node": f"/ops/nodes/{node.pk}/",
        "drain": f"/ops/nodes/{node.pk}/drain/",
        "gpus": "/ops/gpus/",
        "gpu": f"/ops/gpus/{gpu.pk}/",
        "queue": "/ops/queue/",
        "lease": f"/ops/leases/{portal.leases['fold']}/",
        "offerings": "/ops/offerings/",
        "offering": f"/ops/offerings/{Offering.objects.all()[0].pk}/",
        "ledger": "/ops/ledger/",
        "taxes": "/ops/tax-rates/",
        "month close": "/ops/month-close/",
        "invoices": "/ops/invoices/",
        "invoice": f"/ops/invoices/{portal.declined}/",
        "system": "/ops/system/",
        "tenants": "/ops/tenants/",
        "tenant": f"/ops/tenants/{portal.owner.tenant.pk}/",
        "leases": "/ops/leases/?state=all",
        "search": "/ops/search/?q=fold",
        "corrections": f"/ops/corrections/?lease={portal.leases['fold']}",
    }


@contextmanager
def opened(portal: Portal, chromium: Browser, **options: object) -> Iterator[Page]:
    with portal.context(chromium, **options) as context:
        yield context.new_page()


@by_fifths
@pytest.mark.parametrize(("width", "theme"), WIDTHS_AND_THEMES)
def test_no_rule_of_accessibility_is_broken(
    operations: Portal, chromium: Browser, width: int, theme: str, fifth: int
) -> None:
    found = []
    viewport = {"width": width, "height": 900}
    with opened(operations, chromium, viewport=viewport, color_scheme=theme, bypass_csp=True) as page:
        for name, address in take_fifth(addresses(operations).items(), fifth):
            page.goto(address)
            page.evaluate(AXE)
            broken = page.evaluate("rules => axe.run({runOnly: rules})", RULES)["violations"]
            found += [(name, rule["id"], rule["nodes"][0]["html"][:300]) for rule in broken]
    assert found == []


@by_fifths
def test_no_width_scrolls_sideways_and_no_csp_violation_occurs(
    operations: Portal, chromium: Browser, fifth: int
) -> None:
    wide = []
    with opened(operations, chromium) as page:
        for name, address in take_fifth(addresses(operations).items(), fifth):
            page.goto(address)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                wide += [(name, width, beyond)] if beyond > 0 else []
    assert wide == []
    assert operations.complaints == []


def test_hovering_describes_a_gpu_and_arrow_keys_navigate_the_map(operations: Portal, chromium: Browser) -> None:
    with opened(operations, chromium) as page:
        page.goto("/ops/")
        page.hover(f'{MAP}[aria-label*="GPU 3:"]')
        expect(page.locator("#gpu-panel h2")).to_have_text(re.compile("GPU 3$"))
        page.focus(f'{MAP}[tabindex="0"]')
        assert page.locator(f'{MAP}[tabindex="0"]').count() == 1
        page.keyboard.press("End")
        expect(page.locator("#gpu-panel h2")).to_have_text(re.compile("GPU 7$"))
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#gpu-panel h2")).to_have_text(re.compile("GPU 6$"))
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/ops/gpus/gpu_"))
        expect(page.locator("h1")).to_contain_text("GPU 6")


def test_the_top_bar_shows_how_many_integrity_checks_pass(operations: Portal, chromium: Browser) -> None:
    with opened(operations, chromium) as page:
        for address in ("/ops/", "/ops/queue/", "/ops/system/"):
            page.goto(address)
            expect(page.locator("#integrity-count")).to_have_text(re.compile(rf"^\s*\d+ of {len(ALL_INVARIANTS)}\s*$"))
            expect(page.locator("#integrity-count")).to_be_visible()


def test_a_map_refresh_keeps_the_selected_gpu(operations: Portal, chromium: Browser) -> None:
    with staff_scope():
        taken = list(Allocation.objects.filter(released_at=None).values_list("gpu_id", flat=True))
    gpu = Gpu.objects.exclude(pk__in=taken).first() or Gpu.objects.all()[0]
    with opened(operations, chromium) as page:
        answers: list[int] = []
        page.on("response", lambda r: answers.append(r.status) if "/ops/fleet-map/" in r.url else None)
        page.goto("/ops/")
        drawn = page.locator(f'{MAP}[href*="{gpu.pk}"]')
        drawn.focus()
        try:
            hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=clock.now())
            expect(page.locator(f"{MAP}.unhealthy")).to_have_count(1)
            expect(drawn).to_be_focused()
            expect(drawn).to_have_attribute("aria-current", "true")
            with page.expect_response(lambda again: "/ops/fleet-map/" in again.url and again.status == 304):
                pass  # the same map is not sent twice
        finally:
            hardware.set_gpu_health(gpu, GpuHealth.HEALTHY, reason="reseated", actor=OPERATOR, now=clock.now())
        assert 200 in answers
        expect(page.locator(MAP).first).to_be_visible()


def test_a_node_is_cordoned_and_brought_back_without_a_script(operations: Portal, chromium: Browser) -> None:
    node = Node.objects.all()[0]
    with opened(operations, chromium, java_script_enabled=False) as page:
        page.goto(f"/ops/nodes/{node.pk}/")
        page.get_by_role("link", name="Cordon").click()
        page.get_by_label("Reason").fill("new power supply")
        page.get_by_role("button", name=f"Cordon {node.name}").click()
        expect(page.locator("h1")).to_contain_text("Cordoned")
        expect(page.get_by_text("new power supply")).to_be_visible()
        page.get_by_role("link", name="Return to service").click()
        page.get_by_label("Reason").fill("it is in")
        page.get_by_role("button", name=f"Return {node.name}").click()
        expect(page.locator("h1")).to_contain_text("Ready")
