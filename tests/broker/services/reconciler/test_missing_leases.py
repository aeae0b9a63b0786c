"""Leases whose pods are missing: second check and bulk limit."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from broker.models import Lease, NodeState, SimulatedPod, StaleLease
from broker.services.inventory.hardware import SimulatedRack
from broker.services.reconciler import lease_reconciler, missing_leases
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    create_fleet,
    create_gpus,
    create_tenant,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    transitions_of,
)

FEW = missing_leases.ALWAYS_ALLOWED


def create_running_leases(sim: Simulation, count: int) -> list[Lease]:
    create_gpus(count)
    owner, what = create_tenant(units=1000), offering()
    return [reload_lease(sim.create_lease(owner, what, max_duration_s=36_000)) for _ in range(count)]


def delete_pods(*leases: Lease) -> list[SimulatedPod]:
    pods = [SimulatedPod.objects.get(name__startswith=f"l-{each.pk.removeprefix('lse_')}") for each in leases]
    SimulatedPod.objects.filter(pk__in=[each.pk for each in pods]).delete()
    return pods


def reconcile_all(leases: Sequence[Lease], sim: Simulation, *, after_s: float = 0) -> list[str]:
    """Reconcile each lease once after a pause; return the outcomes."""
    sim.messages.clear()
    sim.clock.at += timedelta(seconds=after_s)
    for each in leases:
        lease_reconciler.reconcile_lease(each.pk, each.tenant_id, now=sim.now)
    return [reload_lease(each).state for each in leases]


def test_a_lease_missing_twice_ends_after_a_scheduled_second_check(sim: Simulation) -> None:
    (lease,) = create_running_leases(sim, 1)
    delete_pods(lease)
    assert reconcile_all([lease], sim) == ["active"]
    assert reload_lease(lease).progress["text"] == missing_leases.PROGRESS_TEXT
    sim.run(missing_leases.SECOND_CHECK_AFTER.total_seconds() + 3)
    assert (reload_lease(lease).state, reload_lease(lease).end_reason) == ("released", "device_lost")
    assert "no longer exists" in transitions_of(lease)[-2].cause


def test_observations_in_quick_succession_count_as_one(sim: Simulation) -> None:
    (lease,) = create_running_leases(sim, 1)
    delete_pods(lease)
    assert reconcile_all([lease], sim) == reconcile_all([lease], sim, after_s=1) == ["active"]
    assert reconcile_all([lease], sim, after_s=2) == ["releasing"]


def test_a_reappearing_lease_must_be_missing_twice_again(sim: Simulation) -> None:
    (lease,) = create_running_leases(sim, 1)
    (pod,) = delete_pods(lease)
    reconcile_all([lease], sim)
    pod.save(force_insert=True)
    assert reconcile_all([lease], sim, after_s=5) == ["active"]
    assert reload_lease(lease).progress == {}
    delete_pods(lease)
    assert reconcile_all([lease], sim, after_s=5) == ["active"]
    assert reconcile_all([lease], sim, after_s=5) == ["releasing"]


def test_an_outdated_first_check_does_not_count(sim: Simulation) -> None:
    (lease,) = create_running_leases(sim, 1)
    delete_pods(lease)
    reconcile_all([lease], sim)
    assert reconcile_all([lease], sim, after_s=missing_leases.CHECK_VALID_FOR.total_seconds() + 1) == ["active"]
    assert reconcile_all([lease], sim, after_s=3) == ["releasing"]


def test_a_missing_mark_older_than_last_seen_is_ignored(sim: Simulation) -> None:
    (lease,) = create_running_leases(sim, 1)
    delete_pods(lease)
    reconcile_all([lease], sim)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=sim.now + timedelta(seconds=1))
    assert reconcile_all([lease], sim, after_s=5) == ["active"]


@pytest.mark.deep
def test_many_missing_leases_end_only_after_a_long_absence(sim: Simulation) -> None:
    leases = create_running_leases(sim, FEW + 2)
    there, gone = leases[0], leases[1:]
    assert len(gone) == FEW + 1
    delete_pods(*gone[1:])
    reconcile_all(gone[1:], sim)
    delete_pods(gone[0])
    reconcile_all(gone[:1], sim)
    assert set(reconcile_all(gone, sim, after_s=5)) == {"active"}
    assert all("and other leases" in reload_lease(each).conditions["unreachable"] for each in gone)
    assert reload_lease(there).conditions == {}
    seen = {each.pk: reload_lease(each).seen_at for each in gone}
    for _ in range(21):
        assert set(reconcile_all(gone, sim, after_s=28)) == {"active"}
    assert set(reconcile_all(gone, sim, after_s=28)) == {"releasing"}
    for each in gone:
        assert reload_lease(each).ended_at == seen[each.pk].replace(microsecond=0)


def test_a_few_missing_leases_end_after_the_second_check(sim: Simulation) -> None:
    leases = create_running_leases(sim, FEW)
    delete_pods(*leases)
    reconcile_all(leases, sim)
    assert set(reconcile_all(leases, sim, after_s=5)) == {"releasing"}


def test_a_missing_lease_released_by_its_tenant_is_charged_until_last_seen(sim: Simulation) -> None:
    leases = create_running_leases(sim, FEW + 1)
    delete_pods(*leases)
    reconcile_all(leases, sim)
    reconcile_all(leases, sim, after_s=5)
    seen = reload_lease(leases[0]).seen_at
    assert seen
    sim.clock.at += timedelta(seconds=50)
    sim.release_lease(leases[0])
    assert reload_lease(leases[0]).ended_at == seen.replace(microsecond=0)


def test_many_missing_leases_of_a_cluster_do_not_delay_another(sim: Simulation) -> None:
    leases = create_running_leases(sim, FEW + 1)
    delete_pods(*leases)
    reconcile_all(leases, sim)
    set_node_state(node_of(leases[0]), NodeState.CORDONED, sim)
    create_fleet(SimulatedRack("south-1", REGION, MODEL, nodes=1, gpus_per_node=1))
    other = reload_lease(sim.create_lease(create_tenant("Merlin"), offering(), max_duration_s=36_000))
    assert node_of(other).cluster.name == "south-1"
    delete_pods(other)
    reconcile_all([other], sim)
    assert reconcile_all([other], sim, after_s=5) == ["releasing"]


def test_a_lease_changed_in_the_meantime_raises_stale_lease(sim: Simulation) -> None:
    (lease,) = create_running_leases(sim, 1)
    sim.release_lease(lease)
    with tenant_scope(lease.tenant_id), pytest.raises(StaleLease):
        missing_leases.must_check_again(lease, now=sim.now)
