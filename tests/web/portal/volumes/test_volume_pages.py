"""Volumes in the portal: create, launch on, stop and start with, delete."""

import re

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Volume
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.simulation import offering, reload_lease
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db


def volumes(portal: PortalSession) -> list[Volume]:
    with tenant_scope(portal.owner.tenant.pk):
        return list(Volume.objects.order_by("id"))


def test_submitting_the_form_twice_creates_one_volume(portal: PortalSession) -> None:
    assert "No volumes yet" in portal.read("/volumes/")
    key = re.search(r'name="key" value="([^"]+)"', portal.get("/volumes/").content.decode())
    assert key
    for _ in range(2):
        assert portal.post("/volumes/", name="data", size="30", key=key[1])["Location"] == "/volumes/"
    assert [(each.name, each.size_gib) for each in volumes(portal)] == [("data", 30)]
    page = portal.read("/volumes/")
    for part in ("data", "30 GiB", "not attached", "not created yet", "30 of 200 GiB", "170 GiB are free"):
        assert part in page


def test_a_changed_form_under_a_used_key_is_shown_again_with_a_new_key(portal: PortalSession) -> None:
    assert portal.post("/volumes/", name="data", size="30", key="k1").status_code == 302
    back = portal.post("/volumes/", name="more", size="20", key="k1")
    assert (back.status_code, 'value="more"' in back.content.decode()) == (409, True)
    assert "A volume was already created with this form" in visible_text(back)
    [key] = re.findall(r'name="key" value="([^"]+)"', back.content.decode())
    assert key != "k1"
    assert portal.post("/volumes/", name="more", size="20", key=key).status_code == 302
    assert [each.name for each in volumes(portal)] == ["data", "more"]


def test_an_invalid_volume_form_shows_its_error(portal: PortalSession) -> None:
    portal.post("/volumes/", name="data", size="30")
    for form, said in (
        ({"name": "data", "size": "1"}, "This project already has a volume 'data'. Choose another name."),
        ({"name": "", "size": "1"}, "A name must have 1 to 120 characters"),
        ({"name": "x", "size": "many"}, "1 to 65,536 GiB"),
        ({"name": "x", "size": "500"}, "The quota of this project for volumes is 200 GiB"),
    ):
        answer = portal.post("/volumes/", **form)
        assert (answer.status_code, said in visible_text(answer)) == (409, True)
    assert len(volumes(portal)) == 1
    assert portal.owner.quota_used(QuotaKind.STORAGE) == 30


def test_a_lease_is_launched_on_a_volume_and_both_pages_show_it(portal: PortalSession) -> None:
    portal.post("/volumes/", name="data", size="30")
    (volume,) = volumes(portal)
    page = portal.get(f"/launch/?volume={volume.pk}").content.decode()
    assert re.search(rf'<option value="{volume.pk}" selected>\s*data, 30 GiB\s*</option>', page)
    what = offering("1g.10gb")
    form = {"offering": what.pk, "class": "on_demand", "name": "fold", "lasts": "8 h", "runs": "jupyter"}
    answer = portal.post("/launch/", **form, volume=volume.pk)
    assert answer.status_code == 302
    portal.sim.run(12)
    listed = portal.read("/volumes/")
    assert "fold" in listed
    assert "north-1" in listed
    assert "data, 30 GiB" not in portal.read("/launch/")
    assert "data , 30 GiB, mounted as the home directory" in portal.read(answer["Location"])
    again = portal.post("/launch/", **form, volume=volume.pk)
    assert (again.status_code, "data is attached to fold, which is active" in visible_text(again)) == (409, True)


def test_a_new_volume_is_named_after_its_lease_and_not_kept_when_the_lease_is_refused(portal: PortalSession) -> None:
    form = {
        "class": "on_demand",
        "name": "fold",
        "lasts": "8 h",
        "runs": "jupyter",
        "volume": "new",
        "gib": "20",
    }
    portal.owner.set_quota(QuotaKind.UNITS, 1)
    assert portal.post("/launch/", offering=offering("1g.10gb").pk, **form).status_code == 409
    assert volumes(portal) == []
    portal.owner.set_quota(QuotaKind.UNITS, 100_000)
    too_large = portal.post("/launch/", offering=offering("1g.10gb").pk, **{**form, "gib": "900"})
    assert "for volumes is 200 GiB" in visible_text(too_large)
    assert portal.post("/launch/", offering=offering("1g.10gb").pk, **form).status_code == 302
    assert [(each.name, each.size_gib) for each in volumes(portal)] == [("fold", 20)]
    with tenant_scope(portal.owner.tenant.pk):
        assert Lease.objects.get().volume_id == volumes(portal)[0].pk


def test_a_lease_is_stopped_and_started_again(portal: PortalSession) -> None:
    volume = portal.sim.create_volume(portal.owner, "data")
    lease = portal.sim.create_lease(
        portal.owner, offering("1g.10gb"), name="fold", max_duration_s=8 * 3600, volume=volume.pk
    )
    portal.sim.run(3600)
    page = portal.get(f"/leases/{lease.pk}/").content.decode()
    assert 'popovertarget="stop"' in page
    assert 'popovertarget="start"' not in page
    assert "data is kept" in portal.read(f"/leases/{lease.pk}/stop/")
    assert portal.post(f"/leases/{lease.pk}/stop/")["Location"] == f"/leases/{lease.pk}/"
    portal.sim.run(5)
    page = portal.read(f"/leases/{lease.pk}/")
    for part in ("fold Stopped", "€1.00 €1.00/h so far; nothing is charged now", "Kept", "Start"):
        assert part in page
    assert "1 stopped" in portal.read("/")
    assert "data is kept" in portal.read("/leases/")
    portal.sim.run(3600)
    assert "Time remaining 7 h" in portal.read(f"/leases/{lease.pk}/start/")
    assert portal.post(f"/leases/{lease.pk}/start/").status_code == 302
    portal.sim.run(12)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    portal.sim.run(3600)
    assert "So far €2.00" in portal.read(f"/leases/{lease.pk}/")
    news = portal.read("/")
    assert "started again by" in news
    assert "its volume is kept" in news


@pytest.mark.deep
def test_a_refused_stop_or_start_shows_the_reason(portal: PortalSession) -> None:
    bare = portal.sim.create_lease(portal.owner, offering("1g.10gb"))
    assert 'popovertarget="stop"' not in portal.get(f"/leases/{bare.pk}/").content.decode()
    assert "It has no volume" in portal.read(f"/leases/{bare.pk}/stop/")
    for verb, said in (
        ("stop", "has no volume, so all its data"),
        ("start", "is active. Stop it first"),
    ):
        answer = portal.post(f"/leases/{bare.pk}/{verb}/")
        assert (answer.status_code, said in visible_text(answer)) == (409, True)


@pytest.mark.deep
def test_a_volume_is_deleted_after_a_page_that_states_the_consequences(portal: PortalSession) -> None:
    volume = portal.sim.create_volume(portal.owner, "data")
    lease = portal.sim.create_lease(portal.owner, offering("1g.10gb"), name="fold", volume=volume.pk)
    assert "fold (active) is attached to this volume." in portal.read(f"/volumes/{volume.pk}/delete/")
    assert portal.post(f"/volumes/{volume.pk}/delete/").status_code == 409
    portal.sim.release_lease(lease)
    portal.sim.run(10)
    assert "All data written since" in portal.read(f"/volumes/{volume.pk}/delete/")
    assert portal.post(f"/volumes/{volume.pk}/delete/")["Location"] == "/volumes/"
    assert "Deleting" in portal.read("/volumes/")
    portal.sim.run(5)
    assert "No volumes yet" in portal.read("/volumes/")
    assert portal.get(f"/volumes/{volume.pk}/delete/").status_code == 404


def test_a_viewer_sees_volumes_without_actions(portal: PortalSession) -> None:
    volume = portal.sim.create_volume(portal.owner, "data")
    looks = portal.sign_in_as(Role.VIEWER)
    page = looks.get("/volumes/").content.decode()
    assert "data" in page
    assert "/delete/" not in page
    assert "Create a volume" not in page
    assert looks.post("/volumes/", name="x", size="1").status_code == 403
    assert looks.post(f"/volumes/{volume.pk}/delete/").status_code == 403
