"""A plan of moves in a browser: proposed, looked at, accepted and carried out, its leases unharmed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import transaction
from django.test import Client, override_settings
from playwright.sync_api import Browser, Page, expect

from broker.models import Lease, MovePlan
from broker.services import inventory
from broker.services.inventory import Rack
from ports import clock
from tenants.models import User
from tenants.services.walls import as_staff
from tests.broker.services.movers import no_contradiction
from tests.browser.portal import Portal
from tests.browser.test_pages import AXE, RULES, WIDTHS
from tests.world import MODEL, REGION, Life, fresh, home, offering

pytestmark = pytest.mark.browser
SHOTS = os.environ.get("SHOTS", "")
NAMES = ("fold-notebook", "ranking-eval", "tokenizer", "agent-sandbox", "hydro-forecast")


@pytest.fixture(scope="module")
def movable(portal: Portal) -> list[Lease]:
    """Leases that allow moving, each on a card of its own: those beside them have ended."""
    life = Life(clock.SetClock(clock.now()))
    with transaction.atomic():
        racks = (Rack("south-1", REGION, MODEL, nodes=2, cards_per_node=4),)
        inventory.add_simulated(racks, now=life.now)
    owners = [home("Aurora Robotics"), home("Nordic Weather")]
    leases, fillers = [], []
    for n, name in enumerate(NAMES):
        owner, profile = owners[n % 2], ("1g.10gb", "2g.20gb")[n % 2]
        leases.append(life.ask(owner, offering(profile), name=name, movable=True, max_duration_s=86_400))
        fillers += [life.ask(owner, offering("1g.10gb")) for _ in range(6 - n % 2)]
    wait(lambda: {fresh(each).state for each in leases + fillers} == {"active"})
    for filler in fillers:
        life.release(filler)
    wait(lambda: {fresh(each).state for each in fillers} == {"released"})
    return leases


def wait(done: Callable[[], bool], within_s: float = 120) -> None:
    ends = clock.monotonic() + within_s
    while not done():
        assert clock.monotonic() < ends
        clock.sleep(0.2)


@pytest.fixture(scope="module")
def operations(portal: Portal, movable: list[Lease]) -> Iterator[Portal]:
    client = Client()
    operator = User.objects.create_user("planner@example.org", is_staff=True)
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    with override_settings(OPERATORS_NEED_MFA=False, MOVE_NOTICE_S=2):
        yield replace(portal, cookie=client.cookies["sessionid"].value, complaints=[])


@contextmanager
def opened(portal: Portal, chromium: Browser, **wishes: object) -> Iterator[Page]:
    with portal.context(chromium, **wishes) as context:
        yield context.new_page()


def shoot(page: Page, name: str) -> None:
    """Keep pictures of a page, light and dark, where somebody asked for them."""
    for theme in ("light", "dark") if SHOTS else ():
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.wait_for_timeout(400)  # colours fade over
        page.screenshot(path=Path(SHOTS, f"{name}-{theme}.png"), full_page=True)


def sound(page: Page) -> None:
    """Hold a page to the rules of accessibility, and to its width."""
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
    operations: Portal, chromium: Browser, movable: list[Lease]
) -> None:
    viewport = {"width": 1440, "height": 900}
    with opened(operations, chromium, viewport=viewport, bypass_csp=True) as page:
        page.goto("/ops/plans/")
        page.get_by_role("link", name="Propose a plan now").click()
        sound(page)
        page.get_by_role("button", name="Propose a plan").click()
        wait(lambda: MovePlan.objects.filter(state="proposed", cluster__name="south-1").exists())
        page.goto("/ops/plans/")
        shoot(page, "plans")
        sound(page)
        page.get_by_role("link", name="Open the plan of south-1").click()
        expect(page.get_by_role("heading", name="Before and after")).to_be_visible()
        shoot(page, "plan-proposed")
        sound(page)
        page.get_by_role("link", name="Accept").click()
        shoot(page, "plan-accept")
        page.get_by_label("Reason").fill("whole cards are asked for")
        page.get_by_role("button", name="Accept the plan").click()
        expect(page.get_by_text("Its tenants have been told.", exact=True)).to_be_visible()
        shoot(page, "plan-accepted")
        expect(page.get_by_text("Move 1 moving")).to_be_visible()
        shoot(page, "plan-running")
        expect(page.get_by_text("leases moved").first).to_be_visible(timeout=180_000)
        shoot(page, "plan-done")
        sound(page)
    assert operations.complaints == []
    assert {fresh(lease).state for lease in movable} == {"active"}
    with as_staff():
        assert Lease.objects.filter(pk__in=[lease.pk for lease in movable], generation__gt=2).exists()
    no_contradiction(Life(clock.SetClock(clock.now())))
