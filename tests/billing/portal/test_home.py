"""Home answers first: what runs, what waits, what it costs."""

from datetime import timedelta
from typing import Any

import pytest

from broker.domain.states import EndReason, LeaseState
from broker.services.leases import ending
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import EURO, Desk
from tests.world import OPERATOR, fresh, home, offering

pytestmark = pytest.mark.django_db


def test_a_new_tenant_is_shown_what_to_do_first(desk: Desk) -> None:
    page = desk.read("/")
    assert "No leases yet" in page
    assert "Launch the first one" in page
    assert "Nothing runs in Kestrel, and nothing is charged." in page


def test_one_button_of_a_page_stands_out_also_where_nothing_runs_yet(desk: Desk) -> None:
    for address in ("/", "/leases/", "/queue/"):
        assert desk.get(address).content.decode().count('class="btn p"') <= 1, address
    lease = desk.life.lease(desk.owner, offering())
    assert desk.get("/").content.decode().count('class="btn p"') == 1
    desk.life.release(lease)
    desk.life.run(60)
    assert desk.get("/").content.decode().count('class="btn p"') == 1


def test_a_running_lease_shows_its_price_its_cost_so_far_and_when_it_stops(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering("3g.40gb"), name="fold", max_duration_s=4 * 3600)
    desk.life.run(3600)
    page = desk.read("/")
    assert "1 active in Kestrel." in page
    assert "€3.00/h" in page
    assert "€3.00 so far" in page
    assert lease.ends_at is not None
    assert f"{lease.ends_at:%H:%M} · max duration" in page


def test_a_lease_that_stops_soon_is_in_the_first_sentence(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering(), name="short", max_duration_s=1200)
    assert "short stops at" in desk.read("/")


def test_what_waits_says_why_where_in_line_and_what_would_start_now(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering("card"), quantity=8)
    desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED, name="later")
    desk.life.run(1)
    page = desk.read("/")
    assert "1 of 1 in line" in page
    assert "Waits for one free H100 whole card" in page


def test_what_could_start_now_instead_is_offered_with_its_price(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering("card"), quantity=7)
    desk.life.lease(desk.owner, offering("1g.10gb"))
    waiting = desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED, name="later")
    desk.life.run(1)
    page = desk.read("/")
    assert "Start now on H100 3g.40gb" in page
    assert "40 GB each, 1 free in eu-north €3.00/h" in page
    assert f"again={waiting.pk}&offering={offering('3g.40gb').pk}" in desk.get("/").content.decode().replace(
        "&amp;", "&"
    )


def test_nothing_is_offered_instead_when_everything_is_full(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering("card"), quantity=8)
    desk.life.lease(desk.owner, offering("card"), LeaseState.QUEUED)
    desk.life.run(1)
    assert "Start now" not in desk.read("/")


def test_mine_and_the_projects_leases_are_told_apart(desk: Desk) -> None:
    other = desk.signed_in_as(Role.MEMBER)
    desk.life.lease(desk.owner, offering(), name="mine-alone")
    desk.life.lease(other.owner, offering(), name="of-another")
    assert "of-another" not in table(desk.read("/"))
    assert "of-another" in table(desk.read("/?whose=all"))
    assert "Mine 1 Project 2" in desk.read("/")


def table(page: str) -> str:
    """The part of the page before the events, which tell about everybody."""
    return page.partition("Recent events")[0]


def test_another_tenants_leases_are_not_there(desk: Desk) -> None:
    desk.life.lease(home("Other"), offering(), name="secret-name")
    assert "secret-name" not in desk.read("/?whose=all")


def test_a_burn_quota_becomes_a_ring_and_its_absence_a_figure(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering("1g.10gb"), max_duration_s=9 * 3600)
    desk.life.run(7200)
    assert "€2.00" in desk.read("/")
    assert "Ceiling" not in desk.read("/")
    desk.owner.quota(QuotaKind.BURN, 4 * EURO)
    page = desk.read("/")
    assert "25 % of €4.00/h" in page
    assert "Ceiling €4.00/h" in page


def test_a_burn_quota_from_above_is_no_ring_of_a_part_and_tells_not_what_others_burn(
    desk: Desk, settings: Any
) -> None:
    settings.LEASE_GATES = ("broker.services.quotas.gate", "billing.services.burn.gate")
    design = desk.owner.child("design")
    desk.owner.quota(QuotaKind.BURN, 40 * EURO)
    desk.life.lease(desk.owner, offering("1g.10gb"), project=design)
    desk.life.lease(desk.owner, offering("card"))
    page = desk.signed_in_as(Role.VIEWER, design).get("/")
    month = page.context["month"]
    assert (month.burn, month.held, month.ceiling) == (EURO, 0, None)
    assert "what waits or starts" not in page.content.decode()
    desk.owner.quota(QuotaKind.BURN, 10 * EURO, design)
    month = desk.signed_in_as(Role.VIEWER, design).get("/").context["month"]
    assert (month.burn, month.ceiling) == (EURO, 10 * EURO)


def test_the_first_steps_of_a_part_are_not_done_by_others(desk: Desk) -> None:
    design = desk.owner.child("design")
    desk.owner.member(Role.ADMIN)
    desk.owner.token()
    done = [step.done for step in desk.get("/").context["first"]]
    assert done == [False, True, True]
    lead = desk.signed_in_as(Role.OWNER, design)
    assert [step.done for step in lead.get("/").context["first"]] == [False, False, False]
    desk.owner.member(Role.VIEWER, design)
    assert [step.done for step in lead.get("/").context["first"]] == [False, False, True]


def test_only_the_open_projects_subtree_is_shown(desk: Desk) -> None:
    design = desk.owner.child("design")
    below = desk.owner.child("deeper", design)
    desk.life.lease(desk.owner, offering(), name="in-design", project=design)
    desk.life.lease(desk.owner, offering(), name="in-deeper", project=below)
    desk.life.lease(desk.owner, offering(), name="in-root")
    desk.works_in(design)
    page = desk.read("/")
    assert "in-design" in page
    assert "in-deeper" in page
    assert "in-root" not in page
    assert "2 active in design." in page


def test_events_do_not_name_operators(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering(), name="ended")
    with as_tenant(lease.tenant_id):
        ending.release(fresh(lease), reason=EndReason.BY_OPERATOR, actor=OPERATOR, now=desk.life.now)
    for page in (desk.read("/"), desk.read(f"/leases/{lease.pk}/")):
        assert "operator@example.org" not in page
        assert "an operator" in page


def test_the_frame_shows_burn_spend_and_counts(desk: Desk) -> None:
    desk.life.lease(desk.owner, offering("2g.20gb"), max_duration_s=9 * 3600)
    desk.life.run(1800)
    page = desk.read("/team/")
    assert "Burn now €2.00/h" in page
    assert "Spent in November €1.00" in page
    assert "Leases 1" in page


def test_a_tenants_month_begins_at_its_own_midnight(desk: Desk) -> None:
    desk.moves_to("Pacific/Auckland")
    desk.life.clock.at = desk.life.now.replace(month=11, day=30, hour=10, minute=30) - timedelta(hours=1)
    desk.life.lease(desk.owner, offering("1g.10gb"), max_duration_s=9 * 3600)
    desk.life.run(2 * 3600)
    page = desk.read("/")
    assert "December" in page
    assert "day 1 of 31" in page.lower()
