"""Missing leases are looked up again and never end in bulk."""

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


def running(sim: Simulation, count: int) -> list[Lease]:
    create_gpus(count)
    owner, what = create_tenant(units=1000), offering()
    return [reload_lease(sim.create_lease(owner, what, max_duration_s=36_000)) for _ in range(count)]


def vanish(*leases: Lease) -> list[SimulatedPod]:
    pods = [SimulatedPod.objects.get(name__startswith=f"l-{each.pk.removeprefix('lse_')}") for each in leases]
    SimulatedPod.objects.filter(pk__in=[each.pk for each in pods]).delete()
    return pods


def look(leases: Sequence[Lease], sim: Simulation, *, after_s: float = 0) -> list[str]:
    """Reconcile each lease once after a pause; return the outcomes."""
    sim.messages.clear()
    sim.clock.at += timedelta(seconds=after_s)
    for each in leases:
        lease_reconciler.reconcile_lease(each.pk, each.tenant_id, now=sim.now)
    return [reload_lease(each).state for each in leases]


def test_a_lease_missing_twice_ends_after_a_scheduled_second_check(sim: Simulation) -> None:
    (lease,) = running(sim, 1)
    vanish(lease)
    assert look([lease], sim) == ["active"]
    assert reload_lease(lease).progress["text"] == missing_leases.PROGRESS_TEXT
    sim.run(missing_leases.SECOND_CHECK_AFTER.total_seconds() + 3)
    assert (reload_lease(lease).state, reload_lease(lease).end_reason) == ("released", "device_lost")
    assert "no longer exists" in transitions_of(lease)[-2].cause


def test_observations_in_quick_succession_count_as_one(sim: Simulation) -> None:
    (lease,) = running(sim, 1)
    vanish(lease)
    assert look([lease], sim) == look([lease], sim, after_s=1) == ["active"]
    assert look([lease], sim, after_s=2) == ["releasing"]


def test_one_that_was_there_between_is_looked_for_twice_more(sim: Simulation) -> None:
    (lease,) = running(sim, 1)
    (pod,) = vanish(lease)
    look([lease], sim)
    pod.save(force_insert=True)
    assert look([lease], sim, after_s=5) == ["active"]
    assert reload_lease(lease).progress == {}
    vanish(lease)
    assert look([lease], sim, after_s=5) == ["active"]
    assert look([lease], sim, after_s=5) == ["releasing"]


def test_a_first_look_of_long_ago_says_nothing(sim: Simulation) -> None:
    (lease,) = running(sim, 1)
    vanish(lease)
    look([lease], sim)
    assert look([lease], sim, after_s=missing_leases.CHECK_VALID_FOR.total_seconds() + 1) == ["active"]
    assert look([lease], sim, after_s=3) == ["releasing"]


def test_a_missing_mark_older_than_last_seen_is_ignored(sim: Simulation) -> None:
    (lease,) = running(sim, 1)
    vanish(lease)
    look([lease], sim)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=sim.now + timedelta(seconds=1))
    assert look([lease], sim, after_s=5) == ["active"]


@pytest.mark.deep
def test_a_few_at_once_end_and_more_wait_until_they_stayed_away(sim: Simulation) -> None:
    leases = running(sim, FEW + 2)
    there, gone = leases[0], leases[1:]
    assert len(gone) == FEW + 1
    vanish(*gone[1:])
    look(gone[1:], sim)
    vanish(gone[0])
    look(gone[:1], sim)
    assert set(look(gone, sim, after_s=5)) == {"active"}
    assert all("and other leases" in reload_lease(each).conditions["unreachable"] for each in gone)
    assert reload_lease(there).conditions == {}
    seen = {each.pk: reload_lease(each).seen_at for each in gone}
    for _ in range(21):
        assert set(look(gone, sim, after_s=28)) == {"active"}
    assert set(look(gone, sim, after_s=28)) == {"releasing"}
    for each in gone:
        assert reload_lease(each).ended_at == seen[each.pk].replace(microsecond=0)


def test_a_few_missing_leases_end_after_the_second_check(sim: Simulation) -> None:
    leases = running(sim, FEW)
    vanish(*leases)
    look(leases, sim)
    assert set(look(leases, sim, after_s=5)) == {"releasing"}


def test_a_missing_lease_released_by_its_tenant_is_charged_until_last_seen(sim: Simulation) -> None:
    leases = running(sim, FEW + 1)
    vanish(*leases)
    look(leases, sim)
    look(leases, sim, after_s=5)
    seen = reload_lease(leases[0]).seen_at
    assert seen
    sim.clock.at += timedelta(seconds=50)
    sim.release_lease(leases[0])
    assert reload_lease(leases[0]).ended_at == seen.replace(microsecond=0)


def test_many_missing_leases_of_a_cluster_do_not_delay_another(sim: Simulation) -> None:
    leases = running(sim, FEW + 1)
    vanish(*leases)
    look(leases, sim)
    set_node_state(node_of(leases[0]), NodeState.CORDONED, sim)
    create_fleet(SimulatedRack("south-1", REGION, MODEL, nodes=1, gpus_per_node=1))
    other = reload_lease(sim.create_lease(create_tenant("Merlin"), offering(), max_duration_s=36_000))
    assert node_of(other).cluster.name == "south-1"
    vanish(other)
    look([other], sim)
    assert look([other], sim, after_s=5) == ["releasing"]


def test_a_row_that_moved_meanwhile_is_left_alone(sim: Simulation) -> None:
    (lease,) = running(sim, 1)
    sim.release_lease(lease)
    with tenant_scope(lease.tenant_id), pytest.raises(StaleLease):
        missing_leases.must_check_again(lease, now=sim.now)
