"""Home page: leases, queue, costs and first steps."""

from datetime import timedelta
from typing import Any

import pytest

from billing.services.catalogue import tenant_prices
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.services.leases.lifecycle import termination
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.simulation import OPERATOR, create_tenant, offering, reload_lease
from tests.web.portal.signed_in_user import EURO, PortalSession

pytestmark = pytest.mark.django_db


def test_a_new_tenant_is_offered_to_launch_its_first_lease(portal: PortalSession) -> None:
    page = portal.read("/")
    assert "No leases yet" in page
    assert "Launch your first lease" in page
    assert "No leases are running in Kestrel; nothing is charged." in page


def test_a_home_page_without_leases_names_the_lowest_on_demand_price_of_the_tenant(portal: PortalSession) -> None:
    assert "A slice from €1.00/h is ready within seconds." in portal.read("/")
    now = portal.sim.now.replace(microsecond=0) + timedelta(seconds=1)
    tenant_prices.set_tenant_price(
        tenant=portal.owner.tenant,
        offering=offering("2g.20gb"),
        nano_per_hour=EURO // 4,
        since=now,
        actor=OPERATOR,
        now=now,
    )
    portal.sim.run(60)
    assert "A slice from €0.25/h is ready within seconds." in portal.read("/")
    portal.sim.release_lease(portal.sim.create_lease(portal.owner, offering()))
    portal.sim.run(60)
    page = portal.read("/")
    assert "No leases running" in page
    assert "A slice from €0.25/h is ready within seconds." in page


def test_a_page_has_at_most_one_primary_button(portal: PortalSession) -> None:
    for address in ("/", "/leases/", "/queue/"):
        assert portal.get(address).content.decode().count('class="button button-primary"') <= 1, address
    lease = portal.sim.create_lease(portal.owner, offering())
    assert portal.get("/").content.decode().count('class="button button-primary"') == 1
    portal.sim.release_lease(lease)
    portal.sim.run(60)
    assert portal.get("/").content.decode().count('class="button button-primary"') == 1


def test_a_running_lease_shows_its_price_its_cost_so_far_and_when_it_stops(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering("3g.40gb"), name="fold", max_duration_s=4 * 3600)
    portal.sim.run(3600)
    page = portal.read("/")
    assert "1 active in Kestrel." in page
    assert "€3.00/h" in page
    assert "€3.00 so far" in page
    assert lease.ends_at is not None
    assert f"{lease.ends_at:%H:%M} · max duration" in page


def test_a_lease_that_stops_soon_is_in_the_first_sentence(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering(), name="short", max_duration_s=1200)
    assert "short stops at" in portal.read("/")


def test_a_queued_lease_shows_its_reason_and_position(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=8)
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED, name="later")
    portal.sim.run(1)
    page = portal.read("/")
    assert "1 of 1 in line" in page
    assert "Waits for one free H100 SXM 80GB whole GPU" in page


def test_a_queued_lease_is_offered_an_alternative_that_can_start_now_with_its_price(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=7)
    portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    waiting = portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED, name="later")
    portal.sim.run(1)
    page = portal.read("/")
    assert "Start now on H100 SXM 80GB 3g.40gb" in page
    assert "40 GB each, 1 free in eu-north €3.00/h" in page
    assert f"again={waiting.pk}&offering={offering('3g.40gb').pk}" in portal.get("/").content.decode().replace(
        "&amp;", "&"
    )


def test_a_queued_lease_on_a_full_fleet_is_offered_no_alternative(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), quantity=8)
    portal.sim.create_lease(portal.owner, offering("whole-gpu"), LeaseState.QUEUED)
    portal.sim.run(1)
    assert "Start now" not in portal.read("/")


def test_leases_are_filtered_by_mine_and_project(portal: PortalSession) -> None:
    other = portal.sign_in_as(Role.MEMBER)
    portal.sim.create_lease(portal.owner, offering(), name="mine-alone")
    portal.sim.create_lease(other.owner, offering(), name="of-another")
    assert "of-another" not in table(portal.read("/"))
    assert "of-another" in table(portal.read("/?whose=all"))
    assert "Mine 1 Project 2" in portal.read("/")


def table(page: str) -> str:
    """Return the page text before the list of events."""
    return page.partition("Recent events")[0]


def test_leases_of_another_tenant_are_not_shown(portal: PortalSession) -> None:
    portal.sim.create_lease(create_tenant("Other"), offering(), name="secret-name")
    assert "secret-name" not in portal.read("/?whose=all")


def test_a_burn_quota_is_shown_with_its_share_and_without_one_only_the_rate(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=9 * 3600)
    portal.sim.run(7200)
    assert "€2.00" in portal.read("/")
    assert "Limit" not in portal.read("/")
    portal.owner.set_quota(QuotaKind.BURN, 4 * EURO)
    page = portal.read("/")
    assert "25 % of €4.00/h" in page
    assert "Limit €4.00/h" in page


def test_a_project_viewer_does_not_see_the_burn_quota_of_the_tenant(portal: PortalSession, settings: Any) -> None:
    settings.LEASE_GATES = ("broker.services.quotas.gate", "billing.services.quotes.burn_rate_gate.gate")
    design = portal.owner.create_project("design")
    portal.owner.set_quota(QuotaKind.BURN, 40 * EURO)
    portal.sim.create_lease(portal.owner, offering("1g.10gb"), project=design)
    portal.sim.create_lease(portal.owner, offering("whole-gpu"))
    page = portal.sign_in_as(Role.VIEWER, design).get("/")
    month = page.context["page"].month_spend
    assert (month.burn, month.held, month.ceiling) == (EURO, 0, None)
    assert "queued or starting" not in page.content.decode()
    portal.owner.set_quota(QuotaKind.BURN, 10 * EURO, design)
    month = portal.sign_in_as(Role.VIEWER, design).get("/").context["page"].month_spend
    assert (month.burn, month.ceiling) == (EURO, 10 * EURO)


def test_the_first_steps_of_a_project_owner_ignore_the_rest_of_the_tenant(portal: PortalSession) -> None:
    design = portal.owner.create_project("design")
    portal.owner.create_member(Role.ADMIN)
    portal.owner.token()
    done = [step.done for step in portal.get("/").context["page"].first_steps]
    assert done == [False, True, True]
    lead = portal.sign_in_as(Role.OWNER, design)
    assert [step.done for step in lead.get("/").context["page"].first_steps] == [False, False, False]
    portal.owner.create_member(Role.VIEWER, design)
    assert [step.done for step in lead.get("/").context["page"].first_steps] == [False, False, True]


def test_only_the_open_projects_subtree_is_shown(portal: PortalSession) -> None:
    design = portal.owner.create_project("design")
    below = portal.owner.create_project("deeper", design)
    portal.sim.create_lease(portal.owner, offering(), name="in-design", project=design)
    portal.sim.create_lease(portal.owner, offering(), name="in-deeper", project=below)
    portal.sim.create_lease(portal.owner, offering(), name="in-root")
    portal.switch_project(design)
    page = portal.read("/")
    assert "in-design" in page
    assert "in-deeper" in page
    assert "in-root" not in page
    assert "2 active in design." in page


def test_events_do_not_name_operators(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), name="ended")
    with tenant_scope(lease.tenant_id):
        termination.release_lease(reload_lease(lease), reason=EndReason.BY_OPERATOR, actor=OPERATOR, now=portal.sim.now)
    for page in (portal.read("/"), portal.read(f"/leases/{lease.pk}/")):
        assert "operator@example.org" not in page
        assert "an operator" in page


def test_the_page_layout_shows_spend_rate_spend_and_lease_count(portal: PortalSession) -> None:
    portal.sim.create_lease(portal.owner, offering("2g.20gb"), max_duration_s=9 * 3600)
    portal.sim.run(1800)
    page = portal.read("/team/")
    assert "Spend rate €2.00/h" in page
    assert "Spent in November €1.00" in page
    assert "Leases 1" in page


def test_the_month_begins_at_midnight_in_the_tenants_time_zone(portal: PortalSession) -> None:
    portal.change_time_zone("Pacific/Auckland")
    portal.sim.clock.at = portal.sim.now.replace(month=11, day=30, hour=10, minute=30) - timedelta(hours=1)
    portal.sim.create_lease(portal.owner, offering("1g.10gb"), max_duration_s=9 * 3600)
    portal.sim.run(2 * 3600)
    page = portal.read("/")
    assert "December" in page
    assert "day 1 of 31" in page.lower()
