"""Invariant checks with and without faults."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.models import PriceVersion, RatedCharge
from billing.services.ledger import invariant_checks
from billing.services.rating import lease_rating
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Allocation, Lease, Transition
from ports import clock
from tenants.models import Quota, QuotaKind
from tenants.services.actors import SYSTEM
from tenants.services.rls import staff_scope, tenant_scope
from tests import simulation
from tests.billing.histories import add_quote
from tests.database import OwnDatabase
from tests.simulation import Simulation, TenantContext

LATER = timedelta(minutes=4)  # rating has two of them
Plant = Callable[[Simulation, TenantContext, Lease], None]


def failed_checks() -> dict[str, tuple[str, ...]]:
    """Return the failed checks with their examples."""
    with staff_scope():
        return {
            proof.name: proof.examples
            for proof in invariant_checks.check_invariants(now=clock.now())
            if not proof.holds
        }


def run_some_leases(sim: Simulation, owner: TenantContext) -> Lease:
    """Run a few leases, and return an active one."""
    sim.create_lease(owner, simulation.offering("3g.40gb"), LeaseState.RELEASED)
    sim.create_lease(owner, simulation.offering("whole-gpu"), LeaseState.QUEUED)
    lease = sim.create_lease(owner, simulation.offering("1g.10gb"), quantity=2)
    sim.run(LATER.total_seconds())
    lease_rating.rate_all_leases(now=sim.now)
    return lease


@pytest.mark.django_db
def test_all_invariant_checks_pass_without_faults_and_state_their_time(sim: Simulation, kestrel: TenantContext) -> None:
    run_some_leases(sim, kestrel)
    with staff_scope():
        found = invariant_checks.check_invariants(now=sim.now)
    assert [proof.name for proof in found if not proof.holds] == []
    assert len(found) == 20
    assert {proof.checked_at for proof in found} == {sim.now}


def release_allocation(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    first = Allocation.objects.filter(lease=lease).order_by("id").first()
    Allocation.objects.filter(pk=first.pk).update(released_at=sim.now)


def orphan_allocation(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    Allocation.objects.filter(lease=lease).update(generation=lease.generation + 1)


def miscount_quota(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    Quota.objects.filter(kind=QuotaKind.UNITS).update(used=1)


def forget_gpu_seconds(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    Quota.objects.create(
        tenant=owner.tenant,
        project=owner.project,
        kind=QuotaKind.GPU_SECONDS,
        limit=1,
        soft_limit=1,
        window_start=sim.now,
    )
    part = [Quota.objects.get(kind=QuotaKind.GPU_SECONDS).pk, 5, sim.now.isoformat()]
    Lease.objects.filter(pk=lease.pk).update(
        quota_uses={**lease.quota_uses, "gpu_seconds": {"amount": 5, "parts": [part]}}
    )


def break_chain(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    step = lease.build_transition(
        lease.seq + 1, before=LeaseState.QUEUED, after=LeaseState.ACTIVE, actor=SYSTEM, cause="?"
    )
    Transition.objects.bulk_create([step])
    Lease.objects.filter(pk=lease.pk).update(seq=lease.seq + 1)


def lower_sequence(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    Lease.objects.filter(pk=lease.pk).update(seq=lease.seq - 1)


def charge_without_usage(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    RatedCharge.objects.create(
        lease_id=lease.pk,
        seq=99,
        price_version_id=1,
        period_id=1,
        billed_period_id=1,
        tenant_id=owner.tenant.pk,
        project_id=owner.project.pk,
        offering_id=lease.offering_id,
        s=sim.now - timedelta(seconds=5),
        e=sim.now,
        unit_seconds=5,
        exact_num=5,
        run_id=1,
    )


def leave_usage_uncharged(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    Lease.objects.filter(pk=lease.pk).update(ended_at=sim.now - LATER)
    lease.transition(LeaseState.RELEASING, now=sim.now, reason=EndReason.BY_TENANT)


def break_quote(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    add_quote(lease, PriceVersion.objects.get(offering=lease.offering_id))
    charge_without_usage(sim, owner, lease)


def end_price(sim: Simulation, owner: TenantContext, lease: Lease) -> None:
    row = PriceVersion.objects.get(offering=lease.offering_id)
    PriceVersion.objects.filter(pk=row.pk).update(valid=DateTimeTZRange(row.valid.lower, sim.now))


FAULTS: list[tuple[Plant, str]] = [
    (release_allocation, "no lease without allocation"),
    (orphan_allocation, "no orphan allocations"),
    (miscount_quota, "quotas match holdings"),
    (forget_gpu_seconds, "quotas match holdings"),
    (break_chain, "event chain intact"),
    (lower_sequence, "event chain intact"),
    (leave_usage_uncharged, "charges match usage"),
    (charge_without_usage, "no charge without usage"),
    (break_quote, "quotes honoured"),
    (end_price, "no unpriced leases"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("plant", "name"), FAULTS, ids=[plant.__name__ for plant, _ in FAULTS])
def test_each_invariant_check_fails_for_its_own_fault(
    sim: Simulation, kestrel: TenantContext, plant: Plant, name: str
) -> None:
    lease = simulation.reload_lease(run_some_leases(sim, kestrel))
    with tenant_scope(kestrel.tenant.pk):
        plant(sim, kestrel, lease)
    found = failed_checks()
    assert name in found
    assert len(found[name]) >= 1


def test_an_oversold_placement_is_detected_without_the_database_constraint(
    own_database: OwnDatabase,
) -> None:
    with simulation.simulate() as sim:
        simulation.create_gpus(1)
        owner = simulation.create_tenant("Kestrel")
        sim.create_lease(owner, simulation.offering("1g.10gb"))
        sim.create_lease(owner, simulation.offering("1g.10gb"))
        assert "no oversell" not in failed_checks()
        with closing(psycopg.connect(own_database.owner_url, autocommit=True)) as admin:
            admin.execute("ALTER TABLE broker_allocation DROP CONSTRAINT one_lease_per_place")
        with tenant_scope(owner.tenant.pk):
            Allocation.objects.update(placement="[3,4)")
        assert [example.split()[1] for example in failed_checks()["no oversell"]] == ["[3,4)"]
