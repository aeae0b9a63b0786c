"""Concurrent extensions of leases."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.provisioners.base import Observation, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.inventory import cluster_provisioners
from broker.services.leases.lifecycle import extension, termination
from broker.services.queue import lease_placement
from tenants.models import QuotaKind
from tenants.services.rls import tenant_scope
from tests.database import OwnDatabase
from tests.simulation import (
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    simulate,
)

HOUR = 3600


@pytest.fixture
def sim(own_database: OwnDatabase) -> Iterator[Simulation]:
    with simulate() as sim:
        yield sim


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    kestrel = create_tenant("Kestrel")
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 10**12)
    return kestrel


def extend(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    with tenant_scope(owner.tenant.pk):
        extension.extend_lease(reload_lease(lease), more_s=HOUR, actor=owner.actor, now=sim.now)


def test_an_extension_during_provisioning_counts(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = sim.create_lease(kestrel, offering(), LeaseState.PROVISIONING, max_duration_s=HOUR)
    extended: list[str] = []

    class ExtendedMeanwhile(SimulatedProvisioner):
        def ensure(self, order: ProvisionSpec, *, now: object) -> Observation:  # type: ignore[override]
            seen = super().ensure(order, now=now)  # type: ignore[arg-type]
            if seen.seen == "ready" and not extended:
                extended.append(order.name)
                extend(sim, kestrel, lease)
            return seen

    monkeypatch.setattr(cluster_provisioners, "shared_provisioner", ExtendedMeanwhile)
    sim.run(30)
    after = reload_lease(lease)
    assert extended
    assert after.active_at
    assert after.ends_at
    assert after.ends_at - after.active_at == timedelta(seconds=2 * HOUR)


def test_a_stale_expiry_does_not_end_an_extended_lease(sim: Simulation, kestrel: TenantContext) -> None:
    lease = reload_lease(sim.create_lease(kestrel, offering(), max_duration_s=120))
    stale = reload_lease(lease)
    extend(sim, kestrel, lease)
    assert lease.ends_at
    with tenant_scope(kestrel.tenant.pk):
        termination.release_lease(stale, reason=EndReason.EXPIRED, now=lease.ends_at, at=lease.ends_at)
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_release_of_a_stale_lease_returns_all_extended_quota(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, offering("whole-gpu"))
    before = kestrel.quota_used(QuotaKind.GPU_SECONDS)
    waiting = sim.request_lease(kestrel, offering("whole-gpu"))
    stale = reload_lease(waiting)
    extend(sim, kestrel, waiting)
    with tenant_scope(kestrel.tenant.pk):
        termination.release_lease(stale, reason=EndReason.BY_TENANT, now=sim.now)
    assert reload_lease(waiting).state == LeaseState.RELEASED
    assert kestrel.quota_used(QuotaKind.GPU_SECONDS) == before


def test_a_lease_extended_during_placement_is_placed(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.request_lease(kestrel, offering("whole-gpu"), max_duration_s=HOUR)
    stale = reload_lease(lease)
    extend(sim, kestrel, lease)
    with tenant_scope(kestrel.tenant.pk):
        assert lease_placement.place_lease(stale, now=sim.now)
    assert reload_lease(lease).max_duration_s == 2 * HOUR
    assert len(held_allocations(lease)) == 1
