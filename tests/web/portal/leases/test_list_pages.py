"""Lists: leases, catalogue, queue and their filters, pages and CSV."""

import csv
from io import StringIO

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.services.placement import available_capacity
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.simulation import offering
from tests.web.portal.signed_in_user import PortalSession
from web.portal.leases import lease_list_page as page

pytestmark = pytest.mark.django_db


def table(portal: PortalSession, path: str) -> list[dict[str, str]]:
    answer = portal.get(path)
    assert answer["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(StringIO(answer.content.decode())))


def test_leases_are_filtered_by_state_price_class_and_search_text(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering(), name="alpha")
    portal.sim.create_lease(portal.owner, offering(price_class="spot"), name="beta")
    portal.sim.create_lease(portal.owner, offering(), LeaseState.RELEASED, name="gamma")
    live = portal.read("/leases/")
    assert "alpha" in live
    assert "gamma" not in live
    assert "gamma" in portal.read("/leases/?state=over")
    spot = portal.read("/leases/?class=spot")
    assert "beta" in spot
    assert "alpha" not in spot
    found = portal.read("/leases/?q=ALP&state=all")
    assert "alpha" in found
    assert "beta" not in found
    assert "No leases match these filters" in portal.read("/leases/?q=none-is-called-so")


def test_a_tenant_without_leases_sees_no_hint_about_filters(portal: PortalSession) -> None:
    assert "No leases yet" in portal.read("/leases/")
    assert "Launch your first lease" not in portal.sign_in_as(Role.VIEWER).read("/leases/")
    portal.sim.create_lease(portal.owner, offering(), LeaseState.RELEASED)
    assert "No leases match these filters" in portal.read("/leases/")


def test_tabs_show_the_number_of_leases_by_state(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering())
    portal.sim.create_lease(portal.owner, offering(), LeaseState.RELEASED)
    assert "Live 1 Active 1 Waiting 0 Released 1 All 2" in portal.read("/leases/")


def test_pages_of_leases_do_not_overlap_while_leases_are_added(
    portal: PortalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE_SIZE", 3)
    names = [f"job-{n:03d}" for n in range(7)]
    for name in names:
        portal.sim.request_lease(portal.owner, offering(), name=name)
    seen: list[str] = []
    address = "/leases/"
    while address:
        answer = portal.get(address)
        seen += [row.lease.name for row in answer.context["page"].rows]
        portal.sim.request_lease(portal.owner, offering(), name="newcomer")
        address = answer.context["page"].older
    assert seen == names[::-1]


def test_invalid_cursors_and_filters_do_not_fail(portal: PortalSession) -> None:
    assert portal.get("/leases/?cursor=%00").status_code in (200, 400)
    assert portal.get("/leases/?cursor=zzz&state=nonsense&class=nonsense").status_code == 200


def test_leases_as_csv_carry_seconds_and_amounts(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("2g.20gb"), name="=cmd()", max_duration_s=9 * 3600)
    portal.sim.run(1800)
    [row] = table(portal, "/leases/?format=csv")
    assert row["id"] == lease.pk
    assert (row["charged_seconds"], row["amount"], row["currency"]) == ("1800", "1.000000", "EUR")
    assert row["name"] == "'=cmd()", "a spreadsheet must not run it"


def test_the_catalogue_shows_the_exact_number_of_free_offerings(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("3g.40gb"))
    with tenant_scope(portal.owner.tenant.pk):
        free = available_capacity.count_available([offering("3g.40gb"), offering("whole-gpu")])
    assert free[offering("whole-gpu").pk] == 7
    page = portal.read("/catalogue/")
    half, whole = "6 CPUs, 48 GiB memory, 100 GiB scratch", "12 CPUs, 96 GiB memory, 200 GiB scratch"
    assert f"3g.40gb H100 SXM 80GB {half} 40 GB hardware eu-north {free[offering('3g.40gb').pk]} free" in page
    assert f"Whole GPU H100 SXM 80GB {whole} 80 GB device eu-north 7 free" in page


def test_the_catalogue_shows_how_many_leases_the_quota_allows(portal: PortalSession) -> None:
    portal.owner.set_quota(QuotaKind.UNITS, 10_000)
    groups = portal.get("/catalogue/").context["page"].groups
    rows = {row.name: row.quota_headroom for _, group in groups for row in group}
    assert (rows["Whole GPU"], rows["3g.40gb"], rows["1g.10gb"]) == (1, 3, 10)


def test_the_catalogue_is_filtered_and_sorted_by_its_address(portal: PortalSession) -> None:
    big = portal.read("/catalogue/?memory=64")
    assert "Whole GPU" in big
    assert "1g.10gb" not in big
    rows = [row.nano_per_hour for _, g in portal.get("/catalogue/?sort=price").context["page"].groups for row in g]
    assert rows == sorted(rows)
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=8)
    assert "No offerings match these filters" in portal.read("/catalogue/?free=now")
    assert portal.get("/catalogue/?memory=x&sort=y&model=z").status_code == 200


def test_the_catalogue_as_csv_has_every_offering_with_its_price(portal: PortalSession) -> None:
    rows = {row["offering"]: row for row in table(portal, "/catalogue/?format=csv")}
    one = rows[offering("3g.40gb", price_class="spot").pk]
    assert (one["price_per_hour"], one["price_class"], one["free_now"]) == ("1.500000000", "spot", "16")


def test_a_viewer_is_offered_no_launch(portal: PortalSession) -> None:
    assert 'href="/launch/?offering=' not in portal.sign_in_as(Role.VIEWER).get("/catalogue/").content.decode()


def test_the_queue_shows_position_and_an_alternative_that_can_start_now(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=7)
    portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED, name="waits", quantity=1)
    portal.sim.run(1)
    page = portal.read("/queue/")
    assert "waits" in page
    assert "1 of 1 in line" in page
    assert "Start now on H100 SXM 80GB 4g.40gb" in page or "Start now on H100 SXM 80GB 3g.40gb" in page
    assert "Cancel request" in page


def test_an_empty_queue_shows_a_notice(portal: PortalSession) -> None:
    assert "The queue is empty" in portal.read("/queue/")
