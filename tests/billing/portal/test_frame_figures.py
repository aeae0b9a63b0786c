"""The frame says what the page says: counted once, and fetched anew together with what a page fetches of itself."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from billing.portal import home, leases
from broker.domain.states import LeaseState
from tests.billing.portal.desks import Desk
from tests.world import offering

pytestmark = pytest.mark.django_db
PAGES = Path(settings.BASE_DIR, "templates/billing")


def count(page: str, name: str) -> str:
    return re.search(rf'<span class="n" id="n-{name}">([^<]*)</span>', page)[1]


def test_the_navigation_counts_what_lives_and_what_waits(desk: Desk) -> None:
    page = desk.get("/").content.decode()
    assert (count(page, "leases"), count(page, "queue")) == ("", "")
    desk.life.release(desk.life.lease(desk.owner, offering("1g.10gb")))
    desk.life.run(10)
    desk.life.lease(desk.owner, offering("card"), quantity=8)
    desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED)
    for address in ("/", "/leases/", "/leases/?state=over", "/queue/", "/spend/"):
        page = desk.get(address).content.decode()
        assert (count(page, "leases"), count(page, "queue")) == ("2", "1"), address


@pytest.mark.parametrize(("module", "address"), [(home, "/?whose=all"), (leases, "/leases/")])
def test_a_lease_that_comes_while_the_page_is_put_together_is_on_all_of_it_or_on_none(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, module: object, address: str
) -> None:
    desk.life.lease(desk.owner, offering("1g.10gb"))
    render = module.render

    def late(*given: object, **more: object) -> object:
        desk.life.lease(desk.owner, offering("1g.10gb"))
        return render(*given, **more)

    monkeypatch.setattr(module, "render", late)
    page = desk.get(address).content.decode()
    assert count(page, "leases") == "1"
    monkeypatch.undo()
    assert count(desk.get(address).content.decode(), "leases") == "2"


def test_a_line_that_grows_while_the_queue_is_put_together_is_as_long_in_the_navigation(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from billing.portal import queue

    desk.life.lease(desk.owner, offering("card"), quantity=8)
    desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED)
    render = queue.render

    def late(*given: object, **more: object) -> object:
        desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED)
        return render(*given, **more)

    monkeypatch.setattr(queue, "render", late)
    assert count(desk.get("/queue/").content.decode(), "queue") == "1"


def test_whatever_fetches_itself_fetches_the_figures_of_the_frame_with_it() -> None:
    without = [
        page.name
        for page in PAGES.rglob("*.html")
        for tag in re.findall(
            r"<[^>]*hx-get=[^>]*hx-trigger=[^>]*>", page.read_text().replace("%}", "").replace("{%", "")
        )
        if "hx-select=" in tag and "#n-leases,#n-queue,#meters" not in tag and "hx-post" not in tag
    ]
    assert without == []
