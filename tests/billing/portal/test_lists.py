"""Lists: leases, catalogue, queue and their filters, pages and CSV."""

import csv
from io import StringIO

import pytest

from billing.portal import leases as page
from broker.domain.states import LeaseState
from broker.services import capacity
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import Desk
from tests.world import offering

pytestmark = pytest.mark.django_db


def table(desk: Desk, path: str) -> list[dict[str, str]]:
    answer = desk.get(path)
    assert answer["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(StringIO(answer.content.decode())))


def test_leases_are_filtered_by_state_class_and_words(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering(), name="alpha")
    desk.life.lease(desk.owner, offering(price_class="spot"), name="beta")
    desk.life.lease(desk.owner, offering(), LeaseState.RELEASED, name="gamma")
    live = desk.read("/leases/")
    assert "alpha" in live
    assert "gamma" not in live
    assert "gamma" in desk.read("/leases/?state=over")
    spot = desk.read("/leases/?class=spot")
    assert "beta" in spot
    assert "alpha" not in spot
    found = desk.read("/leases/?q=ALP&state=all")
    assert "alpha" in found
    assert "beta" not in found
    assert "Nothing fits these filters" in desk.read("/leases/?q=none-is-called-so")


def test_who_never_had_a_lease_is_not_told_of_filters(desk: Desk) -> None:
    assert "No leases yet" in desk.read("/leases/")
    assert "Launch the first one" not in desk.signed_in_as(Role.VIEWER).read("/leases/")
    desk.life.lease(desk.owner, offering(), LeaseState.RELEASED)
    assert "Nothing fits these filters" in desk.read("/leases/")


def test_tabs_count_what_they_hold(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering())
    desk.life.lease(desk.owner, offering(), LeaseState.RELEASED)
    assert "Live 1 Active 1 Waiting 0 Released 1 All 2" in desk.read("/leases/")


def test_pages_of_leases_meet_without_overlap_while_new_ones_come(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "LIMIT", 3)
    names = [f"job-{n:03d}" for n in range(7)]
    for name in names:
        desk.life.ask(desk.owner, offering(), name=name)
    seen: list[str] = []
    address = "/leases/"
    while address:
        answer = desk.get(address)
        seen += [row.lease.name for row in answer.context["rows"]]
        desk.life.ask(desk.owner, offering(), name="newcomer")
        address = answer.context["older"]
    assert seen == names[::-1]


def test_a_cursor_that_is_none_shows_nothing_and_breaks_nothing(desk: Desk) -> None:
    assert desk.get("/leases/?cursor=%00").status_code in (200, 400)
    assert desk.get("/leases/?cursor=zzz&state=nonsense&class=nonsense").status_code == 200


def test_leases_as_csv_carry_seconds_and_amounts(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("2g.20gb"), name="=cmd()", max_duration_s=9 * 3600)
    desk.life.run(1800)
    [row] = table(desk, "/leases/?format=csv")
    assert row["id"] == lease.pk
    assert (row["charged_seconds"], row["amount"], row["currency"]) == ("1800", "1.000000", "EUR")
    assert row["name"] == "'=cmd()", "a spreadsheet must not run it"


def test_the_catalogue_counts_what_is_free_exactly(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering("3g.40gb"))
    with as_tenant(desk.owner.tenant.pk):
        free = capacity.availability([offering("3g.40gb"), offering("card")])
    assert free[offering("card").pk] == 7
    page = desk.read("/catalogue/")
    assert f"3g.40gb H100 40 GB hardware eu-north {free[offering('3g.40gb').pk]} free" in page
    assert "Whole card H100 80 GB device eu-north 7 free" in page


def test_the_catalogue_shows_what_the_quota_still_allows(desk: Desk) -> None:
    desk.owner.quota(QuotaKind.UNITS, 10_000)
    rows = {row.name: row.left for _, group in desk.get("/catalogue/").context["groups"] for row in group}
    assert (rows["Whole card"], rows["3g.40gb"], rows["1g.10gb"]) == (1, 3, 10)


def test_the_catalogue_is_filtered_and_sorted_by_its_address(desk: Desk) -> None:
    big = desk.read("/catalogue/?memory=64")
    assert "Whole card" in big
    assert "1g.10gb" not in big
    rows = [row.nano_per_hour for _, g in desk.get("/catalogue/?sort=price").context["groups"] for row in g]
    assert rows == sorted(rows)
    desk.life.lease(desk.owner, offering("card"), quantity=8)
    assert "Nothing is sold with these filters" in desk.read("/catalogue/?free=now")
    assert desk.get("/catalogue/?memory=x&sort=y&model=z").status_code == 200


def test_the_catalogue_as_csv_has_every_offering_with_its_price(desk: Desk) -> None:
    rows = {row["offering"]: row for row in table(desk, "/catalogue/?format=csv")}
    one = rows[offering("3g.40gb", price_class="spot").pk]
    assert (one["price_per_hour"], one["price_class"], one["free_now"]) == ("1.500000000", "spot", "16")


def test_a_viewer_is_offered_no_launch(desk: Desk) -> None:
    assert (
        'href="/launch/?offering=' not in desk.signed_in_as(Role.VIEWER).get("/catalogue/").content.decode()
    )


def test_the_queue_tells_reason_place_and_what_would_start_now(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering("card"), quantity=7)
    desk.life.lease(desk.owner, offering("1g.10gb"))
    desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED, name="waits", quantity=1)
    desk.life.run(1)
    page = desk.read("/queue/")
    assert "waits" in page
    assert "1 of 1 in line" in page
    assert "Start now on H100 4g.40gb" in page or "Start now on H100 3g.40gb" in page
    assert "Leave the queue" in page


def test_an_empty_queue_teaches(desk: Desk) -> None:
    assert "Nothing waits" in desk.read("/queue/")
