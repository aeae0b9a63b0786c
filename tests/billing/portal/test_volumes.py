"""Volumes in the portal: made, launched on, stopped and started with, deleted."""

import re

import pytest

from broker.domain.states import LeaseState
from broker.models import Lease, Volume
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.walls import as_tenant
from tests.billing.portal.desks import Desk, words
from tests.world import fresh, offering

pytestmark = pytest.mark.django_db


def volumes(desk: Desk) -> list[Volume]:
    with as_tenant(desk.owner.tenant.pk):
        return list(Volume.objects.order_by("id"))


def test_one_is_made_however_often_the_button_is_pressed(desk: Desk) -> None:
    assert "No volumes yet" in desk.read("/volumes/")
    key = re.search(r'name="key" value="([^"]+)"', desk.get("/volumes/").content.decode())
    assert key
    for _ in range(2):
        assert desk.post("/volumes/", name="data", size="30", key=key[1])["Location"] == "/volumes/"
    assert [(each.name, each.size_gib) for each in volumes(desk)] == [("data", 30)]
    page = desk.read("/volumes/")
    for part in ("data", "30 GiB", "no lease", "nowhere yet", "30 of 200 GiB", "170 GiB are free"):
        assert part in page


def test_going_back_and_asking_for_another_shows_the_form_again_with_a_new_key(desk: Desk) -> None:
    assert desk.post("/volumes/", name="data", size="30", key="k1").status_code == 302
    back = desk.post("/volumes/", name="more", size="20", key="k1")
    assert (back.status_code, 'value="more"' in back.content.decode()) == (409, True)
    assert "A volume was made with this form already" in words(back)
    [key] = re.findall(r'name="key" value="([^"]+)"', back.content.decode())
    assert key != "k1"
    assert desk.post("/volumes/", name="more", size="20", key=key).status_code == 302
    assert [each.name for each in volumes(desk)] == ["data", "more"]


def test_what_is_wrong_stands_beside_its_field(desk: Desk) -> None:
    desk.post("/volumes/", name="data", size="30")
    for form, said in (
        ({"name": "data", "size": "1"}, "There is a volume 'data' in this project. Choose another name."),
        ({"name": "", "size": "1"}, "A name has 1 to 120 characters"),
        ({"name": "x", "size": "many"}, "from 1 to 65,536 GiB"),
        ({"name": "x", "size": "500"}, "The quota of this project for volumes is 200 GiB"),
    ):
        answer = desk.post("/volumes/", **form)
        assert (answer.status_code, said in words(answer)) == (409, True)
    assert len(volumes(desk)) == 1
    assert desk.owner.used(QuotaKind.STORAGE) == 30


def test_a_lease_is_launched_on_one_and_it_says_which_has_it(desk: Desk) -> None:
    desk.post("/volumes/", name="data", size="30")
    (volume,) = volumes(desk)
    page = desk.get(f"/launch/?volume={volume.pk}").content.decode()
    assert f'<option value="{volume.pk}" selected>data, 30 GiB</option>' in page
    what = offering("1g.10gb")
    form = {"offering": what.pk, "class": "on_demand", "name": "fold", "lasts": "8 h", "runs": "jupyter"}
    answer = desk.post("/launch/", **form, volume=volume.pk)
    assert answer.status_code == 302
    desk.life.run(12)
    listed = desk.read("/volumes/")
    assert "fold" in listed
    assert "north-1" in listed
    assert "data" not in desk.read("/launch/")
    assert "data , 30 GiB, at its home" in desk.read(answer["Location"])
    again = desk.post("/launch/", **form, volume=volume.pk)
    assert (again.status_code, "fold has data, and is active" in words(again)) == (409, True)


def test_a_new_one_is_called_after_its_lease_and_goes_with_a_refused_one(desk: Desk) -> None:
    form = {
        "class": "on_demand",
        "name": "fold",
        "lasts": "8 h",
        "runs": "jupyter",
        "volume": "new",
        "gib": "20",
    }
    desk.owner.quota(QuotaKind.UNITS, 1)
    assert desk.post("/launch/", offering=offering("1g.10gb").pk, **form).status_code == 409
    assert volumes(desk) == []
    desk.owner.quota(QuotaKind.UNITS, 100_000)
    too_large = desk.post("/launch/", offering=offering("1g.10gb").pk, **{**form, "gib": "900"})
    assert "for volumes is 200 GiB" in words(too_large)
    assert desk.post("/launch/", offering=offering("1g.10gb").pk, **form).status_code == 302
    assert [(each.name, each.size_gib) for each in volumes(desk)] == [("fold", 20)]
    with as_tenant(desk.owner.tenant.pk):
        assert Lease.objects.get().volume_id == volumes(desk)[0].pk


def test_a_lease_is_stopped_and_started_again(desk: Desk) -> None:
    volume = desk.life.volume(desk.owner, "data")
    lease = desk.life.lease(
        desk.owner, offering("1g.10gb"), name="fold", max_duration_s=8 * 3600, volume=volume.pk
    )
    desk.life.run(3600)
    page = desk.get(f"/leases/{lease.pk}/").content.decode()
    assert 'popovertarget="stop"' in page
    assert 'popovertarget="start"' not in page
    assert "data is kept as it is" in desk.read(f"/leases/{lease.pk}/stop/")
    assert desk.post(f"/leases/{lease.pk}/stop/")["Location"] == f"/leases/{lease.pk}/"
    desk.life.run(5)
    page = desk.read(f"/leases/{lease.pk}/")
    for part in ("fold Stopped", "€1.00 €1.00/h so far; nothing is charged now", "Kept", "Start"):
        assert part in page
    assert "1 stopped" in desk.read("/")
    assert "data is kept" in desk.read("/leases/")
    desk.life.run(3600)
    assert "Left of its time 7 h" in desk.read(f"/leases/{lease.pk}/start/")
    assert desk.post(f"/leases/{lease.pk}/start/").status_code == 302
    desk.life.run(12)
    assert fresh(lease).state == LeaseState.ACTIVE
    desk.life.run(3600)
    assert "So far €2.00" in desk.read(f"/leases/{lease.pk}/")
    news = desk.read("/")
    assert "started again by" in news
    assert "its volume is kept" in news


def test_what_cannot_be_stopped_or_started_says_why(desk: Desk) -> None:
    bare = desk.life.lease(desk.owner, offering("1g.10gb"))
    assert 'popovertarget="stop"' not in desk.get(f"/leases/{bare.pk}/").content.decode()
    assert "It has no volume" in desk.read(f"/leases/{bare.pk}/stop/")
    for verb, said in (
        ("stop", "has no volume, so all that it wrote"),
        ("start", "is active. Stop it first"),
    ):
        answer = desk.post(f"/leases/{bare.pk}/{verb}/")
        assert (answer.status_code, said in words(answer)) == (409, True)


def test_one_is_deleted_after_one_has_seen_what_that_means(desk: Desk) -> None:
    volume = desk.life.volume(desk.owner, "data")
    lease = desk.life.lease(desk.owner, offering("1g.10gb"), name="fold", volume=volume.pk)
    assert "fold has it and is active" in desk.read(f"/volumes/{volume.pk}/delete/")
    assert desk.post(f"/volumes/{volume.pk}/delete/").status_code == 409
    desk.life.release(lease)
    desk.life.run(10)
    assert "All that was written to it since" in desk.read(f"/volumes/{volume.pk}/delete/")
    assert desk.post(f"/volumes/{volume.pk}/delete/")["Location"] == "/volumes/"
    assert "Deleting" in desk.read("/volumes/")
    desk.life.run(5)
    assert "No volumes yet" in desk.read("/volumes/")
    assert desk.get(f"/volumes/{volume.pk}/delete/").status_code == 404


def test_who_may_only_look_is_offered_nothing_to_do(desk: Desk) -> None:
    volume = desk.life.volume(desk.owner, "data")
    looks = desk.signed_in_as(Role.VIEWER)
    page = looks.get("/volumes/").content.decode()
    assert "data" in page
    assert "/delete/" not in page
    assert "Make a volume" not in page
    assert looks.post("/volumes/", name="x", size="1").status_code == 403
    assert looks.post(f"/volumes/{volume.pk}/delete/").status_code == 403
