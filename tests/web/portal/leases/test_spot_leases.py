"""Spot terms, risk and notices on tenants' and operators' pages."""

from datetime import timedelta

import pytest
from django.test import Client

from billing.services.catalogue import price_list
from billing.services.ledger import invariant_checks
from billing.services.rating import lease_rating
from billing.services.reports import conservation
from broker.models import Lease, Offering
from tenants.services.rls import staff_scope
from tests.simulation import OPERATOR, create_tenant, offering, reload_lease, transitions_of
from tests.web.portal.signed_in_user import EURO, PortalSession, visible_text

pytestmark = pytest.mark.django_db
PAST_MINIMUM_S = 601


@pytest.fixture
def spot(portal: PortalSession) -> Offering:
    """Price the spot offering of the whole fleet of eight GPUs, with free first seconds."""
    what = offering("whole-gpu", price_class="spot")
    since = portal.sim.now + timedelta(seconds=1)
    price_list.publish_price(
        offering=what, currency="EUR", nano_per_hour=EURO, since=since, actor=OPERATOR, now=portal.sim.now
    )
    portal.sim.run(2)
    return what


def fill(portal: PortalSession, spot: Offering, **wanted: object) -> list[Lease]:
    """Rent all GPUs as spot leases."""
    leases = [portal.sim.create_lease(portal.owner, spot, max_duration_s=9 * 3600, **wanted) for _ in range(8)]
    portal.sim.run(PAST_MINIMUM_S)
    return leases


def reclaim_one(portal: PortalSession, leases: list[Lease]) -> Lease:
    """Give one of the leases notice."""
    portal.sim.request_lease(create_tenant("Merlin"), offering("whole-gpu"))
    portal.sim.run()
    return next(lease for lease in leases if reload_lease(lease).reclaim_at)


def test_the_launch_page_states_notice_minimum_runtime_and_risk(portal: PortalSession, spot: Offering) -> None:
    address = f"/launch/?offering={spot.pk}&class=spot"
    page = portal.read(address)
    assert "On-demand requests may reclaim it after 10 min of runtime, with 5 min notice." in page
    assert "A run preempted within 120 s is free." in page
    assert "No spot lease ran on this model and region in the last 30 days." in page
    assert "Queue again when preempted." in page
    reclaim_one(portal, fill(portal, spot))
    portal.sim.run_with_sweeps(330)
    assert "Preempted on this model and region in the last 30 days: 1 of 8 spot leases." in portal.read(address)
    portal.sim.clock.at += timedelta(days=31)
    assert "0 of 7 spot leases" in portal.read(address)
    on_demand = portal.read(f"/launch/?offering={offering('whole-gpu').pk}")
    assert "Can be preempted" not in on_demand
    assert "Queue again when preempted" not in on_demand


def test_an_on_demand_quote_states_that_spot_leases_would_get_notice(portal: PortalSession, spot: Offering) -> None:
    address = f"/launch/?offering={offering('whole-gpu').pk}&class=on_demand"
    assert "spot leases get notice" not in portal.read(address)
    fill(portal, spot)
    assert "spot leases get notice for it; it starts after 5 min" in portal.read(address)


def test_the_wishes_of_the_launch_form_reach_the_lease(portal: PortalSession, spot: Offering) -> None:
    form = {"offering": spot.pk, "class": "spot", "name": "fold", "lasts": "2 h", "runs": "jupyter", "count": "1"}
    wishes = {"requeue_when_preempted": "on", "checkpoint_command": "kill -USR1 1"}
    answer = portal.post("/launch/", **form, **wishes)
    page = portal.read(answer["Location"])
    assert "Preemption after 10 min of runtime, with 5 min notice; then queued again" in page
    assert "Checkpoint command kill -USR1 1" in page
    other = {**form, "offering": offering("1g.10gb").pk, "class": "on_demand", "key": "k2"}
    lease = portal.post("/launch/", **other, **wishes)
    assert "Preemption" not in portal.read(lease["Location"])


def test_the_page_of_a_lease_under_notice_says_when_and_why_it_ends(portal: PortalSession, spot: Offering) -> None:
    victim = reclaim_one(portal, fill(portal, spot, checkpoint_command="save", requeue_when_preempted=True))
    page = portal.read(f"/leases/{victim.pk}/")
    at = reload_lease(victim).reclaim_at
    assert at is not None
    assert f"This spot lease ends at {at:%H:%M:%S}" in page
    assert "Checkpoint: the checkpoint command was started." in page
    assert "It is then queued again for the rest of its duration." in page
    assert "notice" in portal.read("/leases/")
    portal.sim.run_with_sweeps(330)
    assert "This spot lease ends at" not in portal.read(f"/leases/{victim.pk}/")
    assert reload_lease(victim).state == "queued"


def test_a_lease_without_a_checkpoint_command_is_told_to_save(portal: PortalSession, spot: Offering) -> None:
    victim = reclaim_one(portal, fill(portal, spot))
    assert "Save what you need before then." in portal.read(f"/leases/{victim.pk}/")


def test_a_reclaimed_lease_is_charged_to_the_end_of_its_notice(portal: PortalSession, spot: Offering) -> None:
    began = portal.sim.now
    victim = reclaim_one(portal, fill(portal, spot))
    notice_ends = reload_lease(victim).reclaim_at
    portal.sim.run_with_sweeps(330)
    lease_rating.rate_all_leases(now=portal.sim.now)
    active_at = next(step.at for step in transitions_of(victim) if step.after == "active")
    assert notice_ends is not None
    cents = round((notice_ends - active_at).total_seconds() / 36)
    assert f"Total €{cents / 100:.2f}" in portal.read(f"/leases/{victim.pk}/")
    assert_books_agree(portal, began)


def test_the_first_seconds_of_a_reclaimed_run_are_free(portal: PortalSession, spot: Offering) -> None:
    Offering.objects.filter(pk=spot.pk).update(spot_notice_s=30, spot_min_runtime_s=0)
    began = portal.sim.now
    leases = [portal.sim.create_lease(portal.owner, spot, max_duration_s=9 * 3600) for _ in range(8)]
    victim = reclaim_one(portal, leases)
    portal.sim.run_with_sweeps(60)
    assert reload_lease(victim).end_reason == "preempted"
    lease_rating.rate_all_leases(now=portal.sim.now)
    page = portal.read(f"/leases/{victim.pk}/")
    assert "free" in page
    assert "Total €0.00" in page
    assert_books_agree(portal, began)


def assert_books_agree(portal: PortalSession, began: object) -> None:
    kept = conservation.check_conservation(first=began, last=portal.sim.now)  # type: ignore[arg-type]
    assert (kept.charged_minus_active, kept.active_without_place) == (0, 0)
    with staff_scope():
        wrong = [check.name for check in invariant_checks.check_invariants(now=portal.sim.now) if not check.holds]
    assert wrong == []


def test_operators_set_the_terms_of_a_spot_offering(portal: PortalSession, operator: Client, spot: Offering) -> None:
    address = f"/ops/offerings/{spot.pk}/"
    assert "Empty: 300 s notice and 600 s minimum runtime" in visible_text(operator.get(address))
    done = operator.post(address, {"notice_s": "60", "min_runtime_s": ""}, follow=True)
    assert "Spot leases requested from now on have these terms." in visible_text(done)
    lease = portal.sim.create_lease(portal.owner, spot)
    assert (lease.spot_notice_s, lease.spot_min_runtime_s) == (60, 600)
    for typed, words in (("much", "not a whole number of seconds"), ("86401", "The time must be from 0 to 86400 s.")):
        wrong = visible_text(operator.post(address, {"notice_s": typed, "min_runtime_s": "5"}))
        assert wrong.count(words) == 1
    spot.refresh_from_db()
    assert (spot.spot_notice_s, spot.spot_min_runtime_s) == (60, None)
    assert "Spot terms" not in visible_text(operator.get(f"/ops/offerings/{offering('whole-gpu').pk}/"))


def test_choosing_another_price_class_brings_the_wishes_of_spot_leases(portal: PortalSession, spot: Offering) -> None:
    form = {"offering": offering("whole-gpu").pk, "name": "fold", "lasts": "2 h", "runs": "jupyter", "count": "1"}
    chosen = portal.post(
        "/launch/quote/", **{**form, "offering": spot.pk}, **{"class": "spot", "checkpoint_command": "x"}
    )
    page = chosen.content.decode()
    assert 'hx-select-oob="#api-call,#duration-text,#spot-wishes"' in page
    assert 'name="checkpoint_command"' in page
    assert 'value="x"' in page
    other = portal.post("/launch/quote/", **form, **{"class": "on_demand"}).content.decode()
    assert '<div id="spot-wishes"' in other
    assert 'name="checkpoint_command"' not in other
