"""Automatic extension of leases, up to a limit and as far as every gate agrees."""

from dataclasses import replace
from datetime import datetime
from unittest import mock

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases import lease_requests
from broker.services.leases.end_notices import end_checks, notice_records
from broker.services.leases.end_notices.end_checks import check_lease_ends
from broker.services.leases.lifecycle.extension import extend_lease
from tenants.models import QuotaKind, Tenant
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

HOUR = 3600


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def run_checked(sim: Simulation, minutes: int) -> None:
    for _ in range(0, minutes, 5):
        sim.run(300)
        check_lease_ends(now=sim.now)


def kinds(lease: Lease) -> list[str]:
    with tenant_scope(lease.tenant_id):
        return [each.kind for each in notice_records.notices_of(lease).order_by("made_at", "pk")]


def test_a_lease_is_extended_by_steps_up_to_its_limit(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=5 * HOUR // 2)
    run_checked(sim, 30)
    assert reload_lease(lease).max_duration_s == HOUR  # not before its last quarter
    run_checked(sim, 20)
    assert reload_lease(lease).max_duration_s == 2 * HOUR
    run_checked(sim, 60)
    assert reload_lease(lease).max_duration_s == 5 * HOUR // 2  # the last step is what is left
    run_checked(sim, 50)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason) == (LeaseState.RELEASED, "expired")
    assert kinds(lease) == ["extended", "extended", "ends_soon", "ends_soon"]


def test_a_refused_extension_ends_the_lease_and_says_why(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 1000 * HOUR)
    lease = sim.create_lease(kestrel, offering(), max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=9 * HOUR)
    run_checked(sim, 50)
    assert reload_lease(lease).max_duration_s == HOUR
    with tenant_scope(kestrel.tenant.pk):
        (why,) = notice_records.refused_extensions([reload_lease(lease)]).values()
    assert "GPU-hours this month" in why
    assert "raise the quota" in why
    assert kinds(lease) == ["extension_refused", "ends_soon"]  # the notice before the end is due after all
    run_checked(sim, 12)
    assert reload_lease(lease).end_reason == "expired"


def test_after_a_refusal_an_extension_by_hand_starts_it_again(sim: Simulation, kestrel: TenantContext) -> None:
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 1000 * HOUR)
    lease = sim.create_lease(kestrel, offering(), max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=9 * HOUR)
    run_checked(sim, 50)
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 100_000 * HOUR)
    with tenant_scope(kestrel.tenant.pk):
        extend_lease(lease, more_s=HOUR, actor=kestrel.actor, now=sim.now)
    run_checked(sim, 65)
    assert reload_lease(lease).max_duration_s == 3 * HOUR


def test_a_stopped_lease_is_not_extended(sim: Simulation, kestrel: TenantContext) -> None:
    home = sim.create_volume(kestrel)
    lease = sim.create_lease(
        kestrel, offering(), max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=9 * HOUR, volume=home.pk
    )
    sim.stop_lease(lease, kestrel)
    run_checked(sim, 120)
    assert reload_lease(lease).max_duration_s == HOUR


def test_a_suspended_tenant_has_no_lease_extended(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=9 * HOUR)
    with tenant_scope(kestrel.tenant.pk):
        Tenant.objects.filter(pk=kestrel.tenant.pk).update(suspended_at=sim.now)
    run_checked(sim, 50)
    assert kinds(lease)[0] == "extension_refused"
    with tenant_scope(kestrel.tenant.pk):
        (why,) = notice_records.refused_extensions([reload_lease(lease)]).values()
    assert why.startswith("Kestrel was suspended on")


def test_an_extension_by_hand_at_the_same_time_is_not_doubled(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = sim.create_lease(kestrel, offering(), max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=9 * HOUR)
    sim.run(50 * 60)
    by_hand = end_checks._refuse_suspended

    def extend_first(waiting: Lease) -> None:
        extend_lease(waiting, more_s=HOUR, actor=kestrel.actor, now=sim.now)
        by_hand(waiting)

    monkeypatch.setattr(end_checks, "_refuse_suspended", extend_first)
    check_lease_ends(now=sim.now)
    assert reload_lease(lease).max_duration_s == 2 * HOUR
    assert kinds(lease) == []


def test_an_extension_keeps_to_the_token_that_allowed_it(sim: Simulation, kestrel: TenantContext) -> None:
    seen = list[str]()

    def note_token(lease: Lease, *, now: datetime) -> None:
        seen.append(lease.requested_with_token)

    robot = replace(kestrel.actor, token="tok_1")
    lease = sim.create_lease(
        replace(kestrel, actor=robot), offering(), max_duration_s=HOUR, extend_by_s=HOUR, extend_limit_s=9 * HOUR
    )
    assert reload_lease(lease).extend_with_token == "tok_1"
    with mock.patch.object(lease_requests, "load_gates", return_value=(note_token,)):
        run_checked(sim, 50)
    assert seen == ["tok_1"]
