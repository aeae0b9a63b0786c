"""Tenants say whether a lease may be moved, are told before it is, and read what a move does in plain words."""

import itertools

import pytest

from billing.models import RatedCharge
from billing.services import rating
from broker.models import Cluster
from broker.services.moving import deciding, proposing
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import Desk
from tests.broker.services.movers import NOTICE_S, apart, moves
from tests.world import OPERATOR, fresh, ledger, offering, soft_offering

pytestmark = pytest.mark.django_db


def test_the_launch_page_asks_whether_it_may_be_moved(desk: Desk) -> None:
    assert "May be moved. After notice it is stopped" in desk.read("/launch/")
    answer = desk.post(
        "/launch/", offering=offering().pk, name="fold", lasts="2 h", runs="jupyter", count="1", movable="on"
    )
    shown = desk.read(answer["Location"])
    assert "May be moved yes, after notice" in shown


def test_it_is_allowed_and_taken_back_on_the_page_of_a_lease(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering())
    page = f"/leases/{lease.pk}/move/"
    assert "May be moved no" in desk.read(f"/leases/{lease.pk}/")
    assert "Goes all that it wrote: it has no volume" in desk.read(page)
    desk.post(page, movable="yes")
    assert fresh(lease).movable
    assert "It stays on its card until it ends." in desk.read(page)
    desk.post(page, movable="no")
    assert not fresh(lease).movable


def test_what_can_never_be_moved_says_so_on_every_page(desk: Desk) -> None:
    several = {"offering": offering().pk, "name": "four", "lasts": "2 h", "runs": "jupyter", "count": "2"}
    asked = desk.post("/launch/quote/", **several, movable="on").content.decode()
    assert "changes nothing here: several that start together stay where they are." in asked
    answer = desk.post("/launch/", **several, movable="on")
    gang = desk.read(answer["Location"])
    assert "May be moved no: several that start together stay where they are" in gang
    assert "Allow it" not in gang
    page = f"{answer['Location']}move/"
    assert "It is not moved to another card: several that start together" in desk.read(page)
    assert desk.post(page, movable="yes").status_code == 409
    share = desk.life.ask(desk.owner, soft_offering())
    assert "May be moved no: a share of a card stays where it is" in desk.read(f"/leases/{share.pk}/")


def test_a_button_pressed_twice_says_the_same_twice(desk: Desk) -> None:
    lease = desk.life.lease(desk.owner, offering())
    page = f"/leases/{lease.pk}/move/"
    assert 'name="movable" value="yes"' in desk.get(page).content.decode()
    for _ in range(2):
        desk.post(page, movable="yes")
        assert fresh(lease).movable
    assert 'name="movable" value="no"' in desk.get(page).content.decode()


def test_a_tenant_is_told_before_and_charged_for_nothing_between(desk: Desk) -> None:
    both = apart(desk.life, desk.owner, desk.owner, movable=True)
    (plan,) = proposing.propose(Cluster.objects.get().pk, now=desk.life.now)
    deciding.accept(plan, why="room", actor=OPERATOR, now=desk.life.now)
    (move,) = moves(plan)
    lease = next(each for each in both if each.pk == move.lease_id)
    assert "Left its card" not in desk.read(f"/leases/{lease.pk}/")
    shown = desk.read(f"/leases/{lease.pk}/")
    assert "It will be moved to another card, not before" in shown
    assert "Not a second is charged between" in shown
    at_home = desk.read("/")
    assert "will be moved to another card, not before" in at_home
    assert f"Moved to another card: {lease.name} not before" in at_home
    desk.life.go(NOTICE_S)
    while fresh(lease).state != "stopping":
        desk.life.run(1)
    shown = desk.read(f"/leases/{lease.pk}/")
    assert "It is being moved to another card." in shown
    assert "Now its program is being stopped Placed on the card that is held for it Active" in shown
    assert "Kept" not in shown
    assert f"Moved to another card: {lease.name} just now" in desk.read("/")
    desk.life.go(60)
    assert fresh(lease).generation == lease.generation + 1
    shown = desk.read(f"/leases/{lease.pk}/")
    assert "not charged on the way Placed" in shown
    assert "on its new card Active" in shown
    assert "Queued again" not in shown
    desk.life.release(lease)
    desk.life.run(30)
    rating.rate(now=desk.life.now)
    steps = ledger(lease)
    active = sum((b.at - a.at).total_seconds() for a, b in itertools.pairwise(steps) if a.after == "active")
    asleep = sum(
        (b.at - a.at).total_seconds()
        for a, b in itertools.pairwise(steps)
        if a.seq > 3 and a.after in ("stopping", "provisioning")
    )
    assert asleep > 0
    with as_tenant(lease.tenant_id):
        charged = sum(RatedCharge.objects.filter(lease_id=lease.pk).values_list("unit_seconds", flat=True))
    assert charged == active
