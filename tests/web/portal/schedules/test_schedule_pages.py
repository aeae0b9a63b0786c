"""Lease schedules in the portal: created on the launch page, shown, paused and deleted."""

import pytest

from broker.models import Lease, LeaseSchedule
from broker.services.leases.schedules.due_schedules import run_due_schedules
from tenants.domain.roles import Role
from tenants.services.rls import tenant_scope
from tests.simulation import create_tenant, offering
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db
FORM = {"name": "nightly", "runs": "batch", "command": "train", "lasts": "1 h", "cron": "0 * * * *"}


def save(portal: PortalSession, **more: str) -> LeaseSchedule:
    answer = portal.post("/launch/", offering=offering().pk, **{**FORM, **more})
    assert answer.status_code == 302, visible_text(answer)
    with tenant_scope(portal.owner.tenant.pk):
        return LeaseSchedule.objects.get()


def test_a_repeated_request_is_saved_in_the_time_zone_of_the_tenant(portal: PortalSession) -> None:
    portal.change_time_zone("Asia/Tokyo")
    schedule = save(portal, cron="0 3 * * *", key="same")
    assert save(portal, cron="0 3 * * *", key="same").pk == schedule.pk
    assert (schedule.time_zone, schedule.overlap) == ("Asia/Tokyo", "skip")
    with tenant_scope(portal.owner.tenant.pk):
        assert not Lease.objects.exists()
    page = portal.read(f"/schedules/{schedule.pk}/")
    assert "Next: 22 Nov 03:00 , 23 Nov 03:00 , 24 Nov 03:00" in page
    assert "Batch command" in page


def test_the_list_shows_next_times_and_the_latest_result(portal: PortalSession) -> None:
    assert "No schedules yet" in portal.read("/schedules/")
    save(portal)
    assert "10:00 , 11:00 , 12:00 not due yet" in portal.read("/schedules/")
    portal.sim.run(3600)
    run_due_schedules(now=portal.sim.now)
    assert "started" in portal.read("/schedules/")
    portal.sim.run(3600)
    run_due_schedules(now=portal.sim.now)
    assert "skipped nightly-1121-1000 of an earlier time is not over." in portal.read("/schedules/")


def test_a_schedule_shows_the_leases_it_requested(portal: PortalSession) -> None:
    schedule = save(portal)
    portal.sim.run(3600)
    run_due_schedules(now=portal.sim.now)
    page = portal.read(f"/schedules/{schedule.pk}/")
    assert "10:00 started nightly-1121-1000" in page


def test_a_schedule_is_paused_resumed_and_changed(portal: PortalSession) -> None:
    schedule = save(portal)
    path = f"/schedules/{schedule.pk}/"
    assert portal.post(path, do="pause").status_code == 302
    assert "Next: paused" in portal.read(path)
    assert portal.post(path, do="resume").status_code == 302
    form = {"do": "save", "cron": "30 4 * * 1", "time_zone": "Europe/Berlin", "overlap": "on"}
    assert portal.post(path, **form).status_code == 302
    with tenant_scope(portal.owner.tenant.pk):
        changed = LeaseSchedule.objects.get()
    assert (changed.cron, changed.time_zone, changed.overlap) == ("30 4 * * 1", "Europe/Berlin", "allow")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"do": "save", "cron": "often", "time_zone": "UTC"}, "has five fields"),
        ({"do": "save", "cron": "0 3 * * *", "time_zone": "Mars"}, "Mars is not a time zone."),
        ({"do": "else"}, "This action does not exist."),
    ],
)
def test_a_wrong_change_is_explained(portal: PortalSession, form: dict[str, str], text: str) -> None:
    schedule = save(portal)
    answer = portal.post(f"/schedules/{schedule.pk}/", **form)
    assert answer.status_code == 409
    assert text in visible_text(answer)


def test_a_schedule_is_deleted_after_confirmation(portal: PortalSession) -> None:
    schedule = save(portal)
    path = f"/schedules/{schedule.pk}/delete/"
    assert "No more leases are requested." in portal.read(path)
    assert portal.post(path).status_code == 302
    assert portal.get(f"/schedules/{schedule.pk}/").status_code == 404


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"cron": "often"}, "has five fields"),
        ({"array_size": "2"}, "A repeated request has no start, end date or array."),
        ({"starts": "2026-11-22T10:00"}, "A repeated request has no start, end date or array."),
        ({"retries": "99"}, "Retries must be 0 to 10."),
    ],
)
def test_an_impossible_repetition_is_explained(portal: PortalSession, wrong: dict[str, str], text: str) -> None:
    answer = portal.post("/launch/", offering=offering().pk, **{**FORM, **wrong})
    assert answer.status_code == 409
    assert text in visible_text(answer)


def test_a_viewer_changes_no_schedule(portal: PortalSession) -> None:
    schedule = save(portal)
    viewer = portal.sign_in_as(Role.VIEWER)
    assert "Pause" not in viewer.read(f"/schedules/{schedule.pk}/")
    assert viewer.post(f"/schedules/{schedule.pk}/", do="pause").status_code == 403
    assert viewer.get(f"/schedules/{schedule.pk}/delete/").status_code == 403


def test_a_schedule_of_another_tenant_is_not_found(portal: PortalSession) -> None:
    schedule = save(portal)
    other = create_tenant("Other")
    user = other.create_member(Role.OWNER)
    portal.client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    assert portal.get(f"/schedules/{schedule.pk}/").status_code == 404
