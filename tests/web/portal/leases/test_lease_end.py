"""The end of a lease on its page: notices, links that extend, automatic extension and runs."""

import re
from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.end_notices.end_checks import check_lease_ends
from broker.services.leases.end_notices.extension_links import sign_extension
from broker.services.reconciler import lease_reconciler
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.simulation import offering, reload_lease
from tests.web.portal.signed_in_user import PortalSession, visible_text

pytestmark = pytest.mark.django_db
HOUR = 3600


def offer_path(lease: Lease, hours: int) -> str:
    assert lease.ends_at is not None
    return f"/leases/{lease.pk}/extend/?offer={sign_extension(lease.pk, hours=hours, ends_at=lease.ends_at)}"


def test_home_and_lease_page_announce_the_end_with_links(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), name="fold", max_duration_s=2 * HOUR)
    assert "stops at" not in portal.read("/")
    portal.sim.run(HOUR + 60)
    for path in ("/", f"/leases/{lease.pk}/"):
        body = portal.get(path).content.decode()
        assert re.search(r"stops at\s", body), path
        assert re.findall(r'/extend/\?offer=[^"]+"[^>]*>\s*Extend (\d) h', body) == ["1", "4"]
    viewer = portal.sign_in_as(Role.VIEWER)
    assert "?offer=" not in viewer.get(f"/leases/{lease.pk}/").content.decode()


def test_a_link_shows_its_cost_and_extends_only_when_confirmed(portal: PortalSession) -> None:
    lease = reload_lease(portal.sim.create_lease(portal.owner, offering(), max_duration_s=2 * HOUR))
    path = offer_path(lease, 4)
    page = portal.read(path)
    assert "Extend 4 h — €4.00 at most" in page
    assert "Extend 1 h" not in page
    assert reload_lease(lease).max_duration_s == 2 * HOUR
    offer = path.partition("offer=")[2]
    assert portal.post(path, offer=offer, hours="4").status_code == 302
    assert reload_lease(lease).max_duration_s == 6 * HOUR


def test_a_link_extends_once(portal: PortalSession) -> None:
    lease = reload_lease(portal.sim.create_lease(portal.owner, offering(), max_duration_s=2 * HOUR))
    path = offer_path(lease, 1)
    form = {"offer": path.partition("offer=")[2], "hours": "1"}
    assert portal.post(path, **form).status_code == 302
    again = portal.post(path, **form)
    assert (again.status_code, reload_lease(lease).max_duration_s) == (409, 3 * HOUR)
    assert "it was extended or stopped since" in visible_text(again)
    assert "This link is no longer valid" in portal.read(path)


def test_a_link_works_only_with_the_permission(portal: PortalSession) -> None:
    lease = reload_lease(portal.sim.create_lease(portal.owner, offering()))
    path = offer_path(lease, 1)
    assert portal.sign_in_as(Role.VIEWER).get(path).status_code == 403
    portal.client.logout()
    assert portal.get(path).status_code == 302


def test_automatic_extension_is_set_on_the_page_of_the_end(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), max_duration_s=2 * HOUR)
    path = f"/leases/{lease.pk}/end-terms/"
    form = {"extend_by": "1 h", "extend_limit": "8 h", "notify_on_end": "on"}
    assert portal.post(path, **form).status_code == 302
    changed = reload_lease(lease)
    assert (changed.extend_by_s, changed.extend_limit_s, changed.notify_on_end) == (HOUR, 8 * HOUR, True)
    assert "Automatic extension by 1 h 00 min , up to 8 h 00 min in total Change" in portal.read(f"/leases/{lease.pk}/")
    assert 'value="8 h"' in portal.get(path).content.decode()
    assert portal.post(path).status_code == 302
    assert reload_lease(lease).extend_by_s == 0


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"extend_by": "soon", "extend_limit": "8 h"}, "soon is not a valid duration."),
        ({"extend_by": "1 h", "extend_limit": "1 h"}, "longer than the lease"),
    ],
)
def test_an_impossible_automatic_extension_is_explained(portal: PortalSession, form: dict[str, str], text: str) -> None:
    lease = portal.sim.create_lease(portal.owner, offering(), max_duration_s=2 * HOUR)
    answer = portal.post(f"/leases/{lease.pk}/end-terms/", **form)
    assert answer.status_code == 409
    assert text in visible_text(answer)
    assert f'value="{form["extend_by"]}"' in answer.content.decode()


def test_a_refused_automatic_extension_is_shown_with_its_reason(portal: PortalSession) -> None:
    portal.owner.set_quota(QuotaKind.GPU_SECONDS, 1000 * HOUR)
    lease = portal.sim.create_lease(
        portal.owner, offering(), max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=4 * HOUR
    )
    portal.sim.run(48 * 60)
    assert "?offer=" not in portal.get(f"/leases/{lease.pk}/").content.decode()
    check_lease_ends(now=portal.sim.now)
    assert "It was not extended automatically: The quota of this project" in portal.read(f"/leases/{lease.pk}/")


def test_the_runs_of_a_command_are_shown_with_exit_codes(portal: PortalSession) -> None:
    lease = portal.sim.create_lease(
        portal.owner, offering(), workload="batch", image="fails/train", command="train", retries=2
    )
    portal.sim.run(15)
    lease_reconciler.check_active_leases(now=portal.sim.now)
    portal.sim.run(5)
    page = portal.read(f"/leases/{lease.pk}/")
    assert "its command failed: exit code 1" in page
    assert "Run 2 of 3 starts at" in page
    assert "Retries 2, now run 2" in page


def test_the_launch_page_asks_for_start_end_and_retries(portal: PortalSession) -> None:
    start = portal.sim.now + timedelta(hours=3)
    form = {
        "offering": offering().pk,
        "name": "nightly",
        "runs": "batch",
        "command": "train",
        "lasts": "2 h",
        "starts": f"{start:%Y-%m-%dT%H:%M}",
        "extend_by": "1 h",
        "extend_limit": "6 h",
        "notify_on_end": "on",
        "retries": "3",
        "attempt_limit": "90 min",
    }
    assert portal.post("/launch/", **form).status_code == 302
    with tenant_scope(portal.owner.tenant.pk):
        lease = Lease.objects.get(name="nightly")
    assert (lease.state, lease.starts_at) == (LeaseState.QUEUED, start)
    assert (lease.extend_by_s, lease.extend_limit_s, lease.notify_on_end) == (HOUR, 6 * HOUR, True)
    assert (lease.retries, lease.attempt_limit_s) == (3, 5400)
    again = portal.get(f"/launch/?again={lease.pk}").content.decode()
    for value in ("1 h 30 min", "6 h", "3"):
        assert f'value="{value}"' in again


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"starts": "tomorrow"}, "This is not a valid date and time."),
        ({"starts": "2020-01-01T10:00"}, "A start must be in the future"),
        ({"extend_by": "x"}, "This is not a valid duration."),
        ({"extend_by": "1 h", "extend_limit": "1 h"}, "The limit of automatic extension is a total duration"),
        ({"retries": "many"}, "This is not a whole number."),
        ({"retries": "99"}, "Retries must be 0 to 10."),
        ({"attempt_limit": "1 s"}, "The time limit of a run must be"),
    ],
)
def test_the_launch_page_shows_each_error_at_its_field(portal: PortalSession, wrong: dict[str, str], text: str) -> None:
    form = {"offering": offering().pk, "name": "x", "runs": "batch", "command": "train", "lasts": "2 h", **wrong}
    answer = portal.post("/launch/", **form)
    assert answer.status_code == 409
    assert text in visible_text(answer)


def test_a_scheduled_lease_has_no_queue_position(portal: PortalSession) -> None:
    start = portal.sim.now + timedelta(hours=3)
    lease = portal.sim.request_lease(portal.owner, offering(), name="later", starts_at=start)
    portal.sim.run()
    queue = portal.read("/queue/")
    assert "scheduled for" in queue
    assert "Starts at 2026-11-21 12:00 UTC, as requested." in queue
    assert "in line" not in queue
    assert "Start now on" not in queue
    assert "Starts at 2026-11-21 12:00 UTC, as requested." in portal.read(f"/leases/{lease.pk}/")
