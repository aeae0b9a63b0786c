"""Notices before and after the end of a lease."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, LeaseNotice
from broker.services.leases import lease_arrays
from broker.services.leases.end_notices import notice_records
from broker.services.leases.end_notices.end_checks import check_lease_ends
from broker.services.leases.end_notices.end_terms import set_end_terms
from broker.services.leases.end_notices.extension_links import read_extension, sign_extension
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.lifecycle.extension import LeaseEndMoved, extend_lease
from broker.services.leases.lifecycle.termination import LeaseAlreadyOver
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

HOUR, STEP_MIN = 3600, 2


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def run_checked(sim: Simulation, minutes: int) -> None:
    """Let time pass, with ends checked every two minutes."""
    for _ in range(0, minutes, STEP_MIN):
        sim.run(60 * STEP_MIN)
        check_lease_ends(now=sim.now)


def notices(lease: Lease) -> list[tuple[str, int]]:
    with tenant_scope(lease.tenant_id):
        return [(each.kind, each.lead_s) for each in notice_records.notices_of(lease).order_by("made_at")]


def test_a_lease_gets_a_notice_an_hour_and_15_min_before_its_end(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR)
    run_checked(sim, 58)
    assert notices(lease) == []
    run_checked(sim, 60)
    assert notices(lease) == [("ends_soon", 3600), ("ends_soon", 900)]


def test_a_short_lease_gets_only_the_notices_that_fit(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), max_duration_s=1800)
    run_checked(sim, 29)
    assert notices(lease) == [("ends_soon", 900)]


def test_a_notice_is_written_once_per_end(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR)
    run_checked(sim, 110)
    with tenant_scope(kestrel.tenant.pk):
        extend_lease(lease, more_s=2 * HOUR, actor=kestrel.actor, now=sim.now)
    run_checked(sim, 120)
    assert notices(lease) == [("ends_soon", 3600), ("ends_soon", 900)] * 2
    with tenant_scope(kestrel.tenant.pk):
        assert len(set(LeaseNotice.objects.values_list("ends_at", flat=True))) == 2


def test_repeated_records_of_a_notice_write_one_row(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering())
    with tenant_scope(kestrel.tenant.pk):
        for _ in range(2):
            notice_records.record_notice(
                lease, notice_records.LeaseNoticeKind.ENDS_SOON, ends_at=sim.now, lead_s=900, now=sim.now
            )
        assert LeaseNotice.objects.count() == 1


def test_a_queued_lease_gets_no_notice(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=20 * HOUR)
    waiting = sim.request_lease(kestrel, offering("whole-gpu"), end_date=sim.now + timedelta(hours=1))
    run_checked(sim, 59)
    assert notices(waiting) == []


def test_an_end_is_reported_where_asked_for(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), notify_on_end=True)
    other = sim.create_lease(kestrel, offering())
    sim.release_lease(lease)
    sim.release_lease(other)
    run_checked(sim, 3)
    assert (notices(lease), notices(other)) == ([("ended", 0)], [])


def test_leases_ending_soon_are_those_with_a_notice_due(sim: Simulation, kestrel: TenantContext) -> None:
    soon = sim.create_lease(kestrel, offering(), max_duration_s=1800)
    sim.create_lease(kestrel, offering(), max_duration_s=2 * HOUR)
    sim.create_lease(kestrel, offering(), max_duration_s=800)
    with tenant_scope(kestrel.tenant.pk):
        assert not notice_records.leases_ending_soon(Lease.objects.all(), now=sim.now)
    sim.run(960)
    extended = sim.create_lease(kestrel, offering(), max_duration_s=1800, extend_by_s=HOUR, extend_limit_s=5 * HOUR)
    with tenant_scope(kestrel.tenant.pk):
        assert list(notice_records.leases_ending_soon(Lease.objects.all(), now=sim.now)) == [soon]
        assert notice_records.refused_extensions([extended]) == {}


def test_a_link_offers_one_extension_of_its_lease(sim: Simulation, kestrel: TenantContext) -> None:
    lease, other = sim.create_lease(kestrel, offering()), sim.create_lease(kestrel, offering())
    lease = reload_lease(lease)
    assert lease.ends_at
    text = sign_extension(lease.pk, hours=4, ends_at=lease.ends_at)
    offered = read_extension(text, lease)
    assert offered
    assert (offered.hours, offered.ends_at) == (4, lease.ends_at)
    assert read_extension(text, other) is None
    assert read_extension(text[:-2] + "xx", lease) is None


def test_an_offered_extension_is_made_once(sim: Simulation, kestrel: TenantContext) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering()))
    with tenant_scope(kestrel.tenant.pk):
        extend_lease(lease, more_s=HOUR, actor=kestrel.actor, now=sim.now, expected_end=lease.ends_at)
        with pytest.raises(LeaseEndMoved):
            extend_lease(lease, more_s=HOUR, actor=kestrel.actor, now=sim.now, expected_end=lease.ends_at)
    assert reload_lease(lease).max_duration_s == 2 * HOUR


def test_changed_end_terms_are_audited(sim: Simulation, kestrel: TenantContext) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering()))
    with tenant_scope(kestrel.tenant.pk):
        changed = set_end_terms(
            lease, extend_by_s=HOUR, extend_limit_s=3 * HOUR, notify_on_end=True, actor=kestrel.actor, now=sim.now
        )
        assert (changed.extend_by_s, changed.extend_limit_s, changed.notify_on_end) == (HOUR, 3 * HOUR, True)
        assert changed.version == lease.version + 1
        again = set_end_terms(changed, extend_by_s=HOUR, actor=kestrel.actor, now=sim.now)
        assert again.version == changed.version
        assert AuditEvent.objects.filter(action="lease.end_terms").count() == 1


def test_end_terms_of_an_ended_lease_stay(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), LeaseState.RELEASED)
    with tenant_scope(kestrel.tenant.pk), pytest.raises(LeaseAlreadyOver):
        set_end_terms(lease, notify_on_end=True, actor=kestrel.actor, now=sim.now)


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"extend_by_s": 60, "extend_limit_s": 2 * HOUR}, "extend_by_s"),
        ({"extend_by_s": HOUR, "extend_limit_s": HOUR}, "extend_limit_s"),
        ({"extend_by_s": HOUR}, "extend_limit_s"),
        ({"extend_by_s": 0, "extend_limit_s": 2 * HOUR}, "extend_by_s"),
        ({"extend_by_s": HOUR, "extend_limit_s": 10_000 * HOUR}, "extend_limit_s"),
    ],
)
def test_an_impossible_automatic_extension_is_refused(
    sim: Simulation, kestrel: TenantContext, terms: dict[str, int], field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        sim.request_lease(kestrel, offering(), max_duration_s=HOUR, **terms)
    assert refused.value.extra["errors"][0]["field"] == field


def test_a_fixed_end_allows_no_automatic_extension(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue, match="fixed end date"):
        sim.request_lease(
            kestrel,
            offering(),
            end_date=sim.now + timedelta(hours=3),
            extend_by_s=HOUR,
            extend_limit_s=5 * HOUR,
        )


def test_the_end_of_an_array_is_reported_once(sim: Simulation, kestrel: TenantContext) -> None:
    wanted = LeaseRequest(offering_id=offering().pk, name="sweep", max_duration_s=HOUR, notify_on_end=True)
    with tenant_scope(kestrel.tenant.pk):
        lease_arrays.request_array(wanted, size=3, project=kestrel.project, actor=kestrel.actor, now=sim.now)
        first, *others = Lease.objects.order_by("array_index")
    sim.release_lease(first)
    run_checked(sim, 4)
    assert notices(first) == []
    for lease in others:
        sim.release_lease(lease)
    run_checked(sim, 4)
    with tenant_scope(kestrel.tenant.pk):
        assert [each.kind for each in LeaseNotice.objects.all()] == ["ended"]
