"""Relocation consent and notices on tenants' pages."""

import itertools
from html import unescape

import pytest

from billing.models import RatedCharge
from billing.services.rating import lease_rating
from broker.models import Cluster
from broker.services.relocation import plan_decisions, plan_proposals
from tenants.services.rls import tenant_scope
from tests.broker.services.relocation.scattered_leases import NOTICE_S, relocations_of, scatter_leases
from tests.simulation import OPERATOR, offering, reload_lease, soft_offering, transitions_of
from tests.web.portal.signed_in_user import PortalSession

pytestmark = pytest.mark.django_db


def test_the_launch_page_offers_to_allow_relocation(portal: PortalSession) -> None:
    assert "Allow relocation. We may stop and restart it" in portal.read("/launch/")
    answer = portal.post(
        "/launch/", offering=offering().pk, name="fold", lasts="2 h", runs="jupyter", count="1", relocatable="on"
    )
    shown = portal.read(answer["Location"])
    assert "Relocation on, after notice" in shown


def test_relocation_is_allowed_and_disallowed_on_the_lease_page(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    page = f"/leases/{lease.pk}/allow-relocation/"
    assert "Relocation off" in portal.read(f"/leases/{lease.pk}/")
    assert "Lost all its data: it has no volume" in portal.read(page)
    portal.post(page, relocatable="yes")
    assert reload_lease(lease).relocatable
    assert "It stays on its GPU until it ends." in portal.read(page)
    portal.post(page, relocatable="no")
    assert not reload_lease(lease).relocatable


def test_leases_that_cannot_be_relocated_show_the_reason(portal: PortalSession) -> None:
    several = {"offering": offering().pk, "name": "four", "lasts": "2 h", "runs": "jupyter", "count": "2"}
    text = unescape(portal.post("/launch/quote/", **several, relocatable="on").content.decode())
    assert "has no effect here: not available for quantity > 1." in text
    answer = portal.post("/launch/", **several, relocatable="on")
    gang = portal.read(answer["Location"])
    assert "Relocation not available for quantity > 1" in gang
    assert "Enable" not in gang
    page = f"{answer['Location']}allow-relocation/"
    assert "Relocation is not available for quantity > 1" in portal.read(page)
    assert portal.post(page, relocatable="yes").status_code == 409
    share = portal.sim.request_lease(portal.owner, soft_offering())
    assert "Relocation not available for shared GPUs" in portal.read(f"/leases/{share.pk}/")


def test_allowing_relocation_twice_has_the_same_effect(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering())
    page = f"/leases/{lease.pk}/allow-relocation/"
    assert 'name="relocatable" value="yes"' in portal.get(page).content.decode()
    for _ in range(2):
        portal.post(page, relocatable="yes")
        assert reload_lease(lease).relocatable
    assert 'name="relocatable" value="no"' in portal.get(page).content.decode()


@pytest.mark.deep
def test_a_relocation_is_announced_and_its_downtime_is_not_charged(portal: PortalSession) -> None:
    both = scatter_leases(portal.sim, portal.owner, portal.owner, relocatable=True)
    (plan,) = plan_proposals.propose_plans(Cluster.objects.get().pk, now=portal.sim.now)
    plan_decisions.accept_plan(plan, why="room", actor=OPERATOR, now=portal.sim.now)
    (move,) = relocations_of(plan)
    lease = next(each for each in both if each.pk == move.lease_id)
    assert "Left its GPU" not in portal.read(f"/leases/{lease.pk}/")
    shown = portal.read(f"/leases/{lease.pk}/")
    assert "This lease will be moved to another GPU at" in shown
    assert "Downtime is not charged" in shown
    at_home = portal.read("/")
    assert "will be moved to another GPU, not before" in at_home
    assert f"Moved to another GPU: {lease.name} not before" in at_home
    portal.sim.run_with_sweeps(NOTICE_S)
    while reload_lease(lease).state != "stopping":
        portal.sim.run(1)
    shown = portal.read(f"/leases/{lease.pk}/")
    assert "It is being moved to another GPU." in shown
    assert "Now the workload is being stopped Placed on its reserved GPU Active" in shown
    assert "Kept" not in shown
    assert f"Moved to another GPU: {lease.name} just now" in portal.read("/")
    portal.sim.run_with_sweeps(60)
    assert reload_lease(lease).generation == lease.generation + 1
    shown = portal.read(f"/leases/{lease.pk}/")
    assert "downtime is not charged Placed" in shown
    assert "on its new GPU Active" in shown
    assert "Queued again" not in shown
    portal.sim.release_lease(lease)
    portal.sim.run(30)
    lease_rating.rate_all_leases(now=portal.sim.now)
    steps = transitions_of(lease)
    active = sum((b.at - a.at).total_seconds() for a, b in itertools.pairwise(steps) if a.after == "active")
    asleep = sum(
        (b.at - a.at).total_seconds()
        for a, b in itertools.pairwise(steps)
        if a.seq > 3 and a.after in ("stopping", "provisioning")
    )
    assert asleep > 0
    with tenant_scope(lease.tenant_id):
        charged = sum(RatedCharge.objects.filter(lease_id=lease.pk).values_list("unit_seconds", flat=True))
    assert charged == active
