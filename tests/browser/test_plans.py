"""A relocation plan in a browser: proposed, accepted and carried out."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import transaction
from django.test import Client, override_settings
from playwright.sync_api import Browser, Page, expect

from broker.models import Lease, RelocationPlan
from broker.services.inventory import hardware
from broker.services.inventory.hardware import SimulatedRack
from ports import clock
from tenants.models import User
from tenants.services.rls import staff_scope
from tests.broker.services.relocation.scattered_leases import assert_invariants
from tests.browser.portal import Portal
from tests.browser.test_pages import AXE, RULES, WIDTHS
from tests.simulation import MODEL, REGION, Simulation, create_tenant, offering, reload_lease

pytestmark = pytest.mark.browser
SHOTS = os.environ.get("SCREENSHOTS", "")  # a folder; pictures are kept there
NAMES = ("fold-notebook", "ranking-eval", "tokenizer", "agent-sandbox", "hydro-forecast")


@pytest.fixture(scope="module")
def relocatable(portal: Portal) -> list[Lease]:
    """Movable leases, each on a GPU of its own."""
    sim = Simulation(clock.SettableClock(clock.now()))
    with transaction.atomic():
        racks = (SimulatedRack("south-1", REGION, MODEL, nodes=2, gpus_per_node=4),)
        hardware.add_simulated_racks(racks, now=sim.now)
    owners = [create_tenant("Aurora Robotics"), create_tenant("Nordic Weather")]
    leases, fillers = [], []
    for n, name in enumerate(NAMES):
        owner, profile = owners[n % 2], ("1g.10gb", "2g.20gb")[n % 2]
        leases.append(sim.request_lease(owner, offering(profile), name=name, relocatable=True, max_duration_s=86_400))
        fillers += [sim.request_lease(owner, offering("1g.10gb")) for _ in range(6 - n % 2)]
    wait(lambda: {reload_lease(each).state for each in leases + fillers} == {"active"})
    for filler in fillers:
        sim.release_lease(filler)
    wait(lambda: {reload_lease(each).state for each in fillers} == {"released"})
    return leases


def wait(done: Callable[[], bool], within_s: float = 120) -> None:
    ends = clock.monotonic() + within_s
    while not done():
        assert clock.monotonic() < ends
        clock.sleep(0.2)


@pytest.fixture(scope="module")
def operations(portal: Portal, relocatable: list[Lease]) -> Iterator[Portal]:
    client = Client()
    operator = User.objects.create_user("planner@example.org", is_staff=True)
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    with override_settings(OPERATORS_REQUIRE_MFA=False, RELOCATION_NOTICE_S=2):
        yield replace(portal, cookie=client.cookies["sessionid"].value, complaints=[])


@contextmanager
def opened(portal: Portal, chromium: Browser, **options: object) -> Iterator[Page]:
    with portal.context(chromium, **options) as context:
        yield context.new_page()


def take_screenshot(page: Page, name: str) -> None:
    """Save screenshots of a page, light and dark, if configured."""
    for theme in ("light", "dark") if SHOTS else ():
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.wait_for_timeout(400)  # colours fade over
        page.screenshot(path=Path(SHOTS, f"{name}-{theme}.png"), full_page=True)


def check_accessibility(page: Page) -> None:
    """Check accessibility rules and width of a page."""
    page.evaluate(AXE)
    broken = page.evaluate("rules => axe.run({runOnly: rules})", RULES)["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"][:300]) for rule in broken] == []
    size = page.viewport_size
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), width
    if size:
        page.set_viewport_size(size)


def test_a_plan_is_proposed_accepted_and_carried_out(
    operations: Portal, chromium: Browser, relocatable: list[Lease]
) -> None:
    viewport = {"width": 1440, "height": 900}
    with opened(operations, chromium, viewport=viewport, bypass_csp=True) as page:
        page.goto("/ops/relocation-plans/")
        page.get_by_role("link", name="Find relocations").click()
        expect(page.get_by_role("button", name="Find relocations")).to_be_visible()
        check_accessibility(page)
        page.get_by_role("button", name="Find relocations").click()
        wait(lambda: RelocationPlan.objects.filter(state="proposed", cluster__name="south-1").exists())
        page.goto("/ops/relocation-plans/")
        take_screenshot(page, "plans")
        check_accessibility(page)
        page.get_by_role("link", name="Open the plan of south-1").click()
        expect(page.get_by_role("heading", name="Before and after")).to_be_visible()
        take_screenshot(page, "plan-proposed")
        check_accessibility(page)
        page.get_by_role("link", name="Accept").click()
        take_screenshot(page, "plan-accept")
        page.get_by_label("Reason").fill("whole GPUs are asked for")
        page.get_by_role("button", name="Accept plan").click()
        expect(page.get_by_text("Tenants are notified.", exact=True)).to_be_visible()
        take_screenshot(page, "plan-accepted")
        expect(page.get_by_text("Relocation 1 moving")).to_be_visible()
        take_screenshot(page, "plan-running")
        expect(page.get_by_text("leases moved").first).to_be_visible(timeout=180_000)
        take_screenshot(page, "plan-done")
        check_accessibility(page)
    assert operations.complaints == []
    assert {reload_lease(lease).state for lease in relocatable} == {"active"}
    with staff_scope():
        assert Lease.objects.filter(pk__in=[lease.pk for lease in relocatable], generation__gt=2).exists()
    assert_invariants(Simulation(clock.SettableClock(clock.now())))
