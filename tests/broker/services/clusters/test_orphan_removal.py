"""Removal of orphans: delay, limit and operator approval."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Installation, Lease, Orphan, SimulatedPod, get_installation_id
from broker.provisioners.base import parse_spec_name, spec_name
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.clusters import orphan_removal
from broker.services.inventory import cluster_provisioners
from tenants.services.rls import staff_scope
from tests.simulation import OPERATOR, Simulation, create_gpus, create_tenant, offering

DAY = timedelta(hours=24)


def create_orphans(sim: Simulation, count: int) -> list[str]:
    """Run pods that the database does not know."""
    names = [f"l-strange{number:03}-g1" for number in range(count)]
    for name in names:
        SimulatedPod.objects.create(name=name, created_at=sim.now)
    return names


def remaining_pods() -> set[str]:
    return set(SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True))


def test_an_unknown_orphan_is_removed_after_a_day(sim: Simulation) -> None:
    (name,) = create_orphans(sim, 1)
    assert orphan_removal.remove_orphans(now=sim.now) == 0
    assert orphan_removal.remove_orphans(now=sim.now + DAY - timedelta(seconds=1)) == 0
    assert remaining_pods() == {name}
    assert orphan_removal.remove_orphans(now=sim.now + DAY) == 1
    assert remaining_pods() == set()


def test_an_orphan_of_a_released_lease_is_removed_at_once(sim: Simulation) -> None:
    create_gpus(1)
    over = sim.create_lease(create_tenant(), offering(), LeaseState.RELEASED)
    SimulatedPod.objects.create(name=spec_name(over.pk, 1), created_at=sim.now)
    assert orphan_removal.remove_orphans(now=sim.now) == 1
    assert remaining_pods() == set()


def test_an_agent_message_removes_orphans_of_its_cluster_only(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    over = sim.create_lease(create_tenant(), offering(), LeaseState.RELEASED)
    SimulatedPod.objects.create(name=spec_name(over.pk, 1), created_at=sim.now)
    cluster, fleet = Cluster.objects.get(), SimulatedProvisioner()
    monkeypatch.setattr(cluster_provisioners, "provisioners_by_cluster", lambda: [(None, fleet), (cluster.pk, fleet)])
    assert orphan_removal.remove_orphans_in("clu_other", now=sim.now) == 0
    assert orphan_removal.remove_orphans_in(cluster.pk, now=sim.now) == 1
    assert remaining_pods() == set()


def test_a_pod_of_a_newer_generation_is_not_removed_as_outdated(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    ahead = spec_name(lease.pk, lease.generation + 1)
    SimulatedPod.objects.create(name=ahead, created_at=sim.now)
    assert orphan_removal.remove_orphans(now=sim.now) == 0
    assert remaining_pods() == {ahead, spec_name(lease.pk, lease.generation)}


def test_an_orphan_record_is_deleted_when_its_pod_disappears(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    with staff_scope():
        generation = Lease.objects.get().generation
    ahead = spec_name(lease.pk, generation + 1)
    SimulatedPod.objects.create(name=ahead, created_at=sim.now)
    orphan_removal.remove_orphans(now=sim.now)
    assert Orphan.objects.get().name == ahead
    SimulatedPod.objects.filter(name=ahead).delete()
    orphan_removal.remove_orphans(now=sim.now + DAY)
    assert not Orphan.objects.exists()


def test_many_orphans_are_removed_only_after_an_operator_approval(sim: Simulation) -> None:
    names = create_orphans(sim, orphan_removal.ALWAYS_ALLOWED + 1)
    orphan_removal.remove_orphans(now=sim.now)
    later = sim.now + DAY
    assert orphan_removal.remove_orphans(now=later) == 0
    assert remaining_pods() == set(names)
    assert set(Orphan.objects.exclude(held_at=None).values_list("name", flat=True)) == set(names)
    assert orphan_removal.approve_removal(None, names[:4], why="a drill", actor=OPERATOR, now=later) == 4
    # The remaining orphans are few now, but stay held until an operator approves them.
    assert orphan_removal.remove_orphans(now=later) == 4
    assert remaining_pods() == set(names[4:])


def test_the_orphan_limit_grows_with_the_running_pods(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    running = [spec_name(f"lse_{number:04}", 1) for number in range(200)]
    for name in running:
        SimulatedPod.objects.create(name=name, created_at=sim.now)
    Orphan.objects.bulk_create(Orphan(name=name, found_at=sim.now - DAY) for name in running[:20])
    assert orphan_removal.remove_orphans(now=sim.now) == 20
    assert len(remaining_pods()) == 181
    assert spec_name(lease.pk, lease.generation) in remaining_pods()


def test_a_slowly_deleted_orphan_is_deleted_again_and_not_counted_twice(sim: Simulation) -> None:
    first = create_orphans(sim, orphan_removal.ALWAYS_ALLOWED)
    SimulatedPod.objects.update(slow=True)
    orphan_removal.remove_orphans(now=sim.now)
    later = sim.now + DAY
    assert orphan_removal.remove_orphans(now=later) == len(first)
    for number in range(3):
        SimulatedPod.objects.create(name=f"l-more{number}-g1", created_at=later)
    Orphan.objects.bulk_create(Orphan(name=f"l-more{number}-g1", found_at=sim.now) for number in range(3))
    assert orphan_removal.remove_orphans(now=later) == len(first) + 3


def test_the_installation_id_is_permanent(sim: Simulation) -> None:
    assert get_installation_id() == get_installation_id() == Installation.objects.get().mark
    assert get_installation_id().startswith("ins_")


@pytest.mark.parametrize("name", ["", "l-", "l-x-g", "x-abc-g1", "l-a_b-g1", "l-abc-g1 "])
def test_an_invalid_spec_name_belongs_to_no_lease(name: str) -> None:
    assert parse_spec_name(name) == ("", 0)
    assert parse_spec_name(spec_name("lse_abc", 12)) == ("lse_abc", 12)
