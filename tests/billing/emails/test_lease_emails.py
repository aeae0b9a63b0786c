"""E-mails about the end of leases: recipients, links, cost and reasons."""

import re
from collections.abc import Iterator

import pytest

from billing.models import QueuedEmail
from billing.services.emails import lease_emails
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases import lease_arrays
from broker.services.leases.end_notices.end_checks import check_lease_ends
from broker.services.leases.end_notices.extension_links import read_extension
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.lifecycle.extension import extend_lease
from tenants.domain.roles import Role
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.billing.budgets.budget_setup import send_emails
from tests.billing.histories import EURO, LONG_AGO, set_price
from tests.simulation import Simulation, TenantContext, create_gpus, offering, reload_lease, simulate

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with simulate() as sim:
        create_gpus(1)
        set_price(offering(), EURO, since=LONG_AGO)
        yield sim


def run_beat(sim: Simulation, minutes: int) -> list[tuple[str, str, str]]:
    """Let time pass with notices and e-mails checked every other minute; return the e-mails."""
    sent = []
    for _ in range(0, minutes, 2):
        sim.run(120)
        check_lease_ends(now=sim.now)
        lease_emails.queue_lease_emails(now=sim.now)
        sent += send_emails(sim)
    return sent


def requested_by(owner: TenantContext, sim: Simulation, **wanted: object) -> tuple[Lease, str]:
    """Request a lease as a member; return it with the member's address."""
    user = owner.create_member(Role.MEMBER)
    lease = sim.create_lease(owner, offering(), name="fold", **wanted)
    with tenant_scope(owner.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(requested_by=user.pk)
    return reload_lease(lease), user.email


def test_the_requester_gets_one_email_per_notice_with_links(kestrel: TenantContext, sim: Simulation) -> None:
    lease, address = requested_by(kestrel, sim, max_duration_s=2 * HOUR, quantity=2)
    first, second = run_beat(sim, 115)
    assert (first[0], second[0]) == (address, address)
    assert first[1] == "fold stops at 21 November 2026, 11:00 (UTC)"
    assert "All data on the lease is lost then." in first[2]
    assert "1 h, €2.00 at most:" in first[2]
    assert "4 h, €8.00 at most:" in first[2]
    links = re.findall(r"http\S+/leases/(\S+)/extend/\?offer=(\S+)", first[2])
    assert [lease_id for lease_id, _ in links] == [lease.pk] * 2
    offers = [read_extension(text, lease) for _, text in links]
    assert [(each.hours, each.ends_at) for each in offers if each] == [(1, lease.ends_at), (4, lease.ends_at)]


def test_an_end_that_moved_sends_no_email(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    lease = reload_lease(sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR))
    sim.run(61 * 60)
    check_lease_ends(now=sim.now)
    with tenant_scope(kestrel.tenant.pk):
        extend_lease(lease, more_s=HOUR, actor=kestrel.actor, now=sim.now)
    lease_emails.queue_lease_emails(now=sim.now)
    assert send_emails(sim) == []
    with tenant_scope(kestrel.tenant.pk):
        assert [each.undelivered_reason for each in QueuedEmail.objects.all()] == ["outdated"]


def test_owners_are_notified_of_leases_of_former_members(kestrel: TenantContext, sim: Simulation) -> None:
    owner = kestrel.create_member(Role.OWNER)
    sim.create_lease(kestrel, offering(), max_duration_s=HOUR // 2)
    assert [to for to, _, _ in run_beat(sim, 20)] == [owner.email]


def test_automatic_extensions_are_reported_with_what_follows(kestrel: TenantContext, sim: Simulation) -> None:
    requested_by(kestrel, sim, max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=5 * HOUR // 2)
    ((_, subject, text),) = run_beat(sim, 50)
    assert subject == "fold was extended until 21 November 2026, 11:00 (UTC)"
    assert "Before then it is extended again by 30 min, up to 2 h 30 min in total." in text
    reported = " ".join(text for _, _, text in run_beat(sim, 60))  # and a notice of the end, in any order
    assert "It has reached its limit of 2 h 30 min and is not extended again." in reported


def test_a_refused_extension_is_reported_with_its_reason(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 1000 * HOUR)
    requested_by(kestrel, sim, max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=9 * HOUR)
    (refused,) = (each for each in run_beat(sim, 50) if "not extended" in each[1])
    assert refused[1] == "fold stops at 21 November 2026, 10:00 (UTC): not extended automatically"
    assert "The quota of this project for GPU-hours this month is" in refused[2]
    assert "/extend/?offer=" in refused[2]


def test_an_end_is_reported_with_reason_time_and_cost(kestrel: TenantContext, sim: Simulation) -> None:
    lease, address = requested_by(kestrel, sim, notify_on_end=True)
    sim.run(30 * 60)
    sim.release_lease(lease)
    ((to, subject, text),) = run_beat(sim, 2)
    assert (to, subject) == (address, "fold ended: released by the tenant")
    assert "It was active for 30 min and cost €0.50." in text


def test_a_cancelled_request_is_reported_as_not_charged(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    lease = sim.create_lease(kestrel, offering(), LeaseState.QUEUED, notify_on_end=True)
    sim.release_lease(lease)
    ((_, _, text),) = run_beat(sim, 1)
    assert "Nothing was charged." in text


def test_the_end_of_an_array_is_one_email_with_its_results(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    wanted = LeaseRequest(offering_id=offering().pk, name="sweep", max_duration_s=HOUR // 2, notify_on_end=True)
    with tenant_scope(kestrel.tenant.pk):
        array = lease_arrays.request_array(wanted, size=3, project=kestrel.project, actor=kestrel.actor, now=sim.now)
    ((_, subject, text),) = run_beat(sim, 40)
    assert subject == "sweep ended: 3 leases"
    assert "They cost €1.50." in text
    assert "3 × reached its end" in text
    assert f"/lease-arrays/{array.pk}/" in text


def test_an_email_names_the_volume_that_is_kept_and_no_unknown_cost(kestrel: TenantContext, sim: Simulation) -> None:
    kestrel.create_member(Role.OWNER)
    home = sim.create_volume(kestrel, "home")
    sim.create_lease(kestrel, offering("2g.20gb"), max_duration_s=HOUR // 2, volume=home.pk)
    ((_, _, text),) = run_beat(sim, 20)
    assert "Volume home is kept; data outside the home directory is lost." in text
    assert "at most" not in text


def test_an_end_after_seconds_is_reported_in_seconds(kestrel: TenantContext, sim: Simulation) -> None:
    lease, _ = requested_by(kestrel, sim, notify_on_end=True)
    sim.run(40)
    sim.release_lease(lease)
    ((_, _, text),) = run_beat(sim, 2)
    assert "It was active for 40 s and cost" in text


def test_a_lease_of_nobody_left_is_reported_as_undeliverable(kestrel: TenantContext, sim: Simulation) -> None:
    sim.create_lease(kestrel, offering(), max_duration_s=HOUR // 2)
    assert run_beat(sim, 20) == []
    with tenant_scope(kestrel.tenant.pk):
        assert [each.undelivered_reason for each in QueuedEmail.objects.all()] == ["no_recipient"]
