"""Time that the simulated cluster takes to create slices."""

from django.test.utils import override_settings

from broker.domain.lifecycle.states import LeaseState
from broker.domain.placement.warm_slices import PartitioningEffort
from broker.models import Lease, SimulatedPod
from broker.provisioners.base import spec_name
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.queue import lease_placement
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

TWO, THREE, SEVEN, WHOLE = "2g.20gb", "3g.40gb", "7g.80gb", "whole-gpu"


def end_lease(sim: Simulation, lease: Lease) -> None:
    sim.release_lease(lease)
    sim.run(10)


def cut_efforts(lease: Lease) -> list[PartitioningEffort | None]:
    with tenant_scope(lease.tenant_id):
        return [each.cutting for each in load_provision_spec(reload_lease(lease)).slices]


def provisioned_s(lease: Lease) -> float:
    pod = SimulatedPod.objects.get(name=spec_name(lease.pk, reload_lease(lease).generation))
    assert pod.ready_at
    return (pod.ready_at - pod.created_at).total_seconds()


def place_new_lease(sim: Simulation, owner: TenantContext, profile: str) -> Lease:
    """Return a lease that is placed but not yet reconciled."""
    lease = sim.request_lease(owner, offering(profile))
    with tenant_scope(lease.tenant_id):
        assert lease_placement.place_lease(reload_lease(lease), now=sim.now)
    return lease


def test_the_provision_spec_states_the_partitioning_effort_only_once(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    for profile, how in (
        (TWO, PartitioningEffort.CREATE),
        (TWO, PartitioningEffort.REUSE),
        (SEVEN, PartitioningEffort.REPLACE),
        (WHOLE, PartitioningEffort.REPLACE),
        (WHOLE, PartitioningEffort.CREATE),
    ):
        lease = place_new_lease(sim, kestrel, profile)
        assert cut_efforts(lease) == [how]
        sim.run()
        assert cut_efforts(lease) == [None]
        end_lease(sim, lease)


def test_creating_a_slice_takes_time_and_reusing_a_leftover_takes_none(sim: Simulation) -> None:
    create_gpus(1)
    kestrel, took = create_tenant(), []
    for profile, cut_s, destroy_s in (
        (TWO, 60, 0),
        (TWO, 60, 0),
        (SEVEN, 0, 900),
        (WHOLE, 60, 900),
        (WHOLE, 60, 900),
    ):
        with override_settings(SIMULATED_PARTITION_S=cut_s, SIMULATED_DESTROY_S=destroy_s):
            lease = place_new_lease(sim, kestrel, profile)
            sim.run()
        took.append(provisioned_s(lease))
        end_lease(sim, lease)
    quick = 15  # pulling and starting take less each time
    assert [seconds > quick for seconds in took] == [True, False, True, True, False]


def test_a_lease_reports_partitioning_while_its_slice_is_created(sim: Simulation) -> None:
    create_gpus(1)
    with override_settings(SIMULATED_PARTITION_S=60, SIMULATED_PROGRESS_S=0.7):
        lease = place_new_lease(sim, create_tenant(), TWO)
        reported = []
        for _ in range(400):
            sim.run(0.5)
            if (now := reload_lease(lease)).state != LeaseState.PROVISIONING:
                break
            reported.append(now.progress.get("text"))
    assert list(dict.fromkeys(reported)) == ["pulling image", "partitioning GPU for 2g.20gb", "starting"]


def test_without_partition_times_no_slice_creation_is_reported(sim: Simulation) -> None:
    create_gpus(1)
    with override_settings(SIMULATED_PARTITION_S=0, SIMULATED_DESTROY_S=0):
        assert cut_efforts(place_new_lease(sim, create_tenant(), TWO)) == [None]


def test_each_slice_of_a_gang_has_its_own_partitioning_effort(sim: Simulation) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    end_lease(sim, sim.create_lease(kestrel, offering(THREE)))
    lease = sim.request_lease(kestrel, offering(THREE), quantity=3)
    with tenant_scope(lease.tenant_id):
        assert lease_placement.place_lease(reload_lease(lease), now=sim.now)
    assert sorted(cut_efforts(lease), key=str) == [
        PartitioningEffort.REUSE,
        PartitioningEffort.CREATE,
        PartitioningEffort.CREATE,
    ]
