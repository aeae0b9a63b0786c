"""Layout figures equal the page's and refresh with it."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from broker.domain.lifecycle.states import LeaseState
from tests.simulation import offering
from tests.web.portal.signed_in_user import PortalSession
from web.portal.home import home_page
from web.portal.leases import lease_list_page

pytestmark = pytest.mark.django_db
PAGES = Path(settings.BASE_DIR, "templates/billing")


def count(page: str, name: str) -> str:
    return re.search(rf'<span class="navigation-count" id="count-{name}">([^<]*)</span>', page)[1]


@pytest.mark.deep
def test_the_navigation_counts_live_leases_and_the_queue(portal: PortalSession) -> None:
    page = portal.get("/").content.decode()
    assert (count(page, "leases"), count(page, "queue")) == ("", "")
    portal.sim.release_lease(portal.sim.create_lease(portal.owner, offering("1g.10gb")))
    portal.sim.run(10)
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=8)
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED)
    for address in ("/", "/leases/", "/leases/?state=over", "/queue/", "/spend/"):
        page = portal.get(address).content.decode()
        assert (count(page, "leases"), count(page, "queue")) == ("2", "1"), address


@pytest.mark.parametrize(("module", "address"), [(home_page, "/?whose=all"), (lease_list_page, "/leases/")])
def test_a_lease_created_during_rendering_is_not_counted_in_the_navigation(
    portal: PortalSession, monkeypatch: pytest.MonkeyPatch, module: object, address: str
) -> None:
    portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    render = module.render

    def late(*given: object, **more: object) -> object:
        portal.sim.create_lease(portal.owner, offering("1g.10gb"))
        return render(*given, **more)

    monkeypatch.setattr(module, "render", late)
    page = portal.get(address).content.decode()
    assert count(page, "leases") == "1"
    monkeypatch.undo()
    assert count(portal.get(address).content.decode(), "leases") == "2"


def test_a_lease_queued_during_rendering_is_not_counted_in_the_navigation(
    portal: PortalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from web.portal.queue import queue_page

    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=8)
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED)
    render = queue_page.render

    def late(*given: object, **more: object) -> object:
        portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED)
        return render(*given, **more)

    monkeypatch.setattr(queue_page, "render", late)
    assert count(portal.get("/queue/").content.decode(), "queue") == "1"


def test_every_polling_element_refreshes_the_layout_figures() -> None:
    without = [
        page.name
        for page in PAGES.rglob("*.html")
        for tag in re.findall(
            r"<[^>]*hx-get=[^>]*hx-trigger=[^>]*>", page.read_text().replace("%}", "").replace("{%", "")
        )
        if "hx-select=" in tag and "#count-leases,#count-queue,#meters" not in tag and "hx-post" not in tag
    ]
    assert without == []
