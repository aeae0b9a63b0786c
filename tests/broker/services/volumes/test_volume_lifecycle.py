"""Volumes: creation, first use, exclusive use and proven deletion."""

from collections.abc import Callable
from datetime import datetime
from threading import Barrier, Thread

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, connection, transaction

from broker.domain.lifecycle.states import LeaseState, VolumeState
from broker.models import Cluster, Lease, Offering, SimulatedVolume, Volume
from broker.provisioners.base import ClusterUnreachable, Observation, ObservedState, ProvisionSpec, VolumeRef
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.clusters.health import cluster_freeze
from broker.services.inventory import cluster_provisioners
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases.lease_requests import LeaseRequest, build_lease, request_lease
from broker.services.queue import lease_placement
from broker.services.reports import invariant_checks
from broker.services.volumes import volume_lifecycle, volume_mounts
from broker.services.volumes.volume_errors import (
    VolumeBeingDeleted,
    VolumeInUse,
    VolumeNameTaken,
    VolumeOutOfReach,
)
from tenants.models import AuditEvent, QuotaKind
from tenants.services import quotas
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError, QuotaExceeded
from tenants.services.rls import staff_scope, tenant_scope
from tests.database import OwnDatabase
from tests.simulation import (
    MODEL,
    NOW,
    OPERATOR,
    REGION,
    Simulation,
    TenantContext,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    simulate,
)

S, V = LeaseState, VolumeState
STORAGE = QuotaKind.STORAGE


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


def reload_volume(volume: Volume) -> Volume:
    with tenant_scope(volume.tenant_id):
        return Volume.objects.select_related("cluster", "project").get(pk=volume.pk)


def delete(sim: Simulation, owner: TenantContext, volume: Volume) -> Volume:
    with tenant_scope(owner.tenant.pk):
        return volume_lifecycle.delete_volume(volume, actor=owner.actor, now=sim.now)


def assert_invariants_hold(sim: Simulation) -> None:
    with staff_scope():
        assert [proof.name for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds] == []


def test_a_new_volume_uses_storage_quota_and_the_first_sets_the_default_limit(
    sim: Simulation, kestrel: TenantContext, settings: LazySettings
) -> None:
    settings.DEFAULT_TENANT_STORAGE_GIB = 50
    team = kestrel.create_project("team")
    volume = sim.create_volume(kestrel, " data ", size_gib=30, project=team)
    assert (volume.name, volume.state, volume.cluster) == ("data", V.READY, None)
    assert kestrel.quota_used(STORAGE) == 30
    with pytest.raises(QuotaExceeded, match=r"for volumes is 50 GiB; 30 are in use, 20 free, and this needs 21\."):
        sim.create_volume(kestrel, "more", size_gib=21, project=team)
    sim.create_volume(kestrel, "more", size_gib=20)
    assert kestrel.quota_used(STORAGE) == 50
    with tenant_scope(kestrel.tenant.pk):
        rows = AuditEvent.objects.filter(action="volume.create").order_by("id")
        assert [event.subject_label for event in rows] == ["data", "more"]
    assert_invariants_hold(sim)


def test_a_later_storage_quota_counts_existing_volumes(sim: Simulation, kestrel: TenantContext) -> None:
    team, other = kestrel.create_project("team"), kestrel.create_project("other")
    kept = sim.create_volume(kestrel, "a", size_gib=30, project=team)
    gone = sim.create_volume(kestrel, "b", size_gib=20, project=team)
    sim.create_volume(kestrel, "c", size_gib=5, project=other)
    delete(sim, kestrel, gone)
    sim.run(1)
    with tenant_scope(kestrel.tenant.pk):
        made = quotas.set_limit(project=team, kind=STORAGE, limit=40, actor=OPERATOR, now=sim.now)
    assert made.used == 30
    assert_invariants_hold(sim)
    delete(sim, kestrel, kept)
    sim.run(1)
    assert (kestrel.quota_used(STORAGE, team), kestrel.quota_used(STORAGE)) == (0, 5)


@pytest.mark.parametrize("size", [0, -1, volume_lifecycle.MAX_SIZE_GIB + 1])
def test_a_volume_size_out_of_range_is_refused(sim: Simulation, kestrel: TenantContext, size: int) -> None:
    with pytest.raises(InvalidValue, match="1 to 65,536 GiB"):
        sim.create_volume(kestrel, size_gib=size)


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "a\u2028b", "a\u202eb", "x" * 121])
def test_an_invalid_volume_name_is_refused(sim: Simulation, kestrel: TenantContext, name: str) -> None:
    with pytest.raises(InvalidValue, match="1 to 120 characters"):
        sim.create_volume(kestrel, name)


def test_a_volume_name_is_unique_in_a_project_until_its_deletion(sim: Simulation, kestrel: TenantContext) -> None:
    first = sim.create_volume(kestrel, "data")
    sim.create_volume(kestrel, "data", project=kestrel.create_project("team"))
    with pytest.raises(VolumeNameTaken):
        sim.create_volume(kestrel, "data")
    delete(sim, kestrel, first)
    sim.run(1)
    assert reload_volume(first).state == V.DELETED
    sim.create_volume(kestrel, "data")


def test_a_volume_outlives_its_lease_and_is_used_by_the_next(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    lease = sim.create_lease(kestrel, offering(), volume=volume.pk)
    made = SimulatedVolume.objects.get(name=volume.pk)
    assert made.last_used_by.endswith(f"-g{reload_lease(lease).generation}")
    there = reload_volume(volume)
    assert there.cluster
    assert (there.cluster.name, there.used_at is not None) == ("north-1", True)
    sim.release_lease(lease)
    sim.run(10)
    assert reload_lease(lease).state == S.RELEASED
    sim.create_lease(kestrel, offering(), volume=volume.pk)
    kept = SimulatedVolume.objects.get(name=volume.pk)
    assert (kept.made_at, kept.last_used_by != made.last_used_by) == (made.made_at, True)


def test_a_volume_is_used_by_one_lease_at_a_time(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    lease = sim.request_lease(kestrel, offering(), volume=volume.pk)
    with pytest.raises(VolumeInUse, match=f"home is attached to {lease.name}, which is queued"):
        sim.request_lease(kestrel, offering(), volume=volume.pk)
    with tenant_scope(kestrel.tenant.pk):
        assert list(volume_mounts.available_volumes(kestrel.project)) == []
        other = sim.request_lease(kestrel, offering())
        with pytest.raises(IntegrityError, match="volume_of_one_lease"), transaction.atomic():
            Lease.objects.filter(pk=other.pk).update(volume=volume)
    sim.release_lease(lease)
    sim.run(5)
    with tenant_scope(kestrel.tenant.pk):
        assert list(volume_mounts.available_volumes(kestrel.project)) == [volume]


def test_a_lease_that_cannot_use_a_volume_is_refused(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    other_tenant = create_tenant("Merlin")
    for owner, project in ((other_tenant, other_tenant.project), (kestrel, kestrel.create_project("team"))):
        with pytest.raises(ObjectNotFound, match="does not exist in this project"):
            sim.request_lease(owner, offering(), project=project, volume=volume.pk)
    with pytest.raises(InvalidValue, match="only one node at a time"):
        sim.request_lease(kestrel, offering(), volume=volume.pk, quantity=2)
    gang = sim.create_lease(kestrel, offering(), volume=volume.pk, quantity=2, same_node=True)
    sim.release_lease(gang)
    sim.run(10)
    delete(sim, kestrel, volume)
    with pytest.raises(VolumeBeingDeleted, match="home is deleting"):
        sim.request_lease(kestrel, offering(), volume=volume.pk)


def test_a_used_volume_binds_leases_to_its_cluster(sim: Simulation) -> None:
    create_fleet(
        SimulatedRack("north-1", REGION, MODEL, 1, 1),
        SimulatedRack("north-2", REGION, MODEL, 1, 1),
        SimulatedRack("west-1", "eu-west", MODEL, 1, 1),
    )
    kestrel = create_tenant("Kestrel")
    here = Offering.objects.get(region=REGION, profile="whole-gpu", price_class="on_demand")
    volume = sim.create_volume(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        away = Cluster.objects.get(name="north-2")
        Volume.objects.filter(pk=volume.pk).update(cluster=away, used_at=sim.now)
    sim.release_lease(sim.create_lease(kestrel, here, volume=volume.pk))
    assert reload_volume(volume).cluster == away
    sim.run(10)
    blocker = sim.create_lease(kestrel, here)
    other = sim.create_lease(kestrel, here)
    sim.release_lease(blocker)  # north-1 is free
    sim.run(10)
    lease = sim.request_lease(kestrel, here, volume=volume.pk)
    sim.run(5)
    assert "All in north-2 (location of its volume) are in use" in reload_lease(lease).pending_reason
    with tenant_scope(kestrel.tenant.pk):
        quote = build_lease(
            LeaseRequest(here.pk, "quote", 3600, volume=sim.create_volume(kestrel, "new").pk),
            project=kestrel.project, actor=kestrel.actor, now=sim.now,
        )  # fmt: skip
        lease_placement.predict_placement(quote)
        assert quote.state == S.PROVISIONING  # a volume without a cluster may be created anywhere
    sim.release_lease(other)
    sim.run(10)
    assert reload_lease(lease).state == S.ACTIVE
    sim.release_lease(lease)
    sim.run(10)
    there = Offering.objects.get(region="eu-west", profile="whole-gpu", price_class="on_demand")
    with pytest.raises(VolumeOutOfReach, match="home is in north-2"):
        sim.request_lease(kestrel, there, volume=volume.pk)


def test_a_lease_bound_to_a_full_cluster_blocks_no_other(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, 1, 1), SimulatedRack("north-2", REGION, MODEL, 1, 1))
    kestrel = create_tenant("Kestrel")
    volume = sim.create_volume(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        Volume.objects.filter(pk=volume.pk).update(cluster=Cluster.objects.get(name="north-2"), used_at=sim.now)
    both = [sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=20_000) for _ in range(2)]
    in_first = next(lease for lease in both if cluster_of(lease) == "north-1")
    waits = sim.request_lease(kestrel, offering("whole-gpu"), volume=volume.pk)
    younger = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.run(3700)
    sim.release_lease(in_first)
    sim.run(15)
    assert (reload_lease(waits).state, reload_lease(younger).state) == (S.QUEUED, S.ACTIVE)


def cluster_of(lease: Lease) -> str:
    with tenant_scope(lease.tenant_id):
        return lease.allocations.select_related("gpu__node__cluster").get(released_at=None).gpu.node.cluster.name


class UnreliableProvisioner(SimulatedProvisioner):
    """A provisioner whose clusters may reject leases or not respond about volumes."""

    def __init__(self) -> None:
        self.full, self.silent, self.calls = set[str](), set[str](), list[str]()

    def ensure(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        seen = super().ensure(order, now=now)
        if order.cluster in self.full:
            return Observation(ObservedState.LOST, "its node does not accept it", last_seen=now)
        return seen

    def at(self, cluster: Cluster) -> "UnreliableProvisioner":
        self.calls.append(cluster.name)
        if cluster.name in self.silent:
            raise ClusterUnreachable("no route to host")
        return self


@pytest.fixture
def unreliable(monkeypatch: pytest.MonkeyPatch) -> UnreliableProvisioner:
    made = UnreliableProvisioner()
    monkeypatch.setattr(cluster_provisioners, "provisioner_of", lambda order: made)
    monkeypatch.setattr(cluster_provisioners, "provisioner_of_cluster", made.at)
    return made


def test_an_empty_volume_follows_its_lease_and_its_old_copy_is_deleted(
    sim: Simulation, unreliable: UnreliableProvisioner
) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, 1, 1), SimulatedRack("north-2", REGION, MODEL, 1, 1))
    kestrel = create_tenant("Kestrel")
    first = Cluster.objects.get(name="north-1")
    unreliable.full.add(first.pk)
    volume = sim.create_volume(kestrel)
    lease = sim.create_lease(kestrel, offering("whole-gpu"), volume=volume.pk)
    there = reload_volume(volume)
    assert there.cluster
    assert (there.cluster.name, there.remaining_clusters) == ("north-2", [first.pk])
    assert cluster_of(lease) == "north-2"
    sim.release_lease(lease)
    sim.run(10)
    delete(sim, kestrel, volume)
    sim.run(5)
    assert (reload_volume(volume).state, set(unreliable.calls)) == (V.DELETED, {"north-1", "north-2"})


def test_a_used_volume_never_changes_its_cluster(sim: Simulation, unreliable: UnreliableProvisioner) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, 1, 1), SimulatedRack("north-2", REGION, MODEL, 1, 1))
    kestrel = create_tenant("Kestrel")
    volume = sim.create_volume(kestrel)
    sim.release_lease(sim.create_lease(kestrel, offering("whole-gpu"), volume=volume.pk))
    sim.run(10)
    there = reload_volume(volume).cluster
    assert there
    unreliable.full.add(there.pk)
    lease = sim.request_lease(kestrel, offering("whole-gpu"), volume=volume.pk)
    sim.run(10)
    assert reload_volume(volume).cluster == there
    assert (reload_lease(lease).state, held_allocations(lease)) == (S.QUEUED, [])
    assert "retried in two minutes" in reload_lease(lease).pending_reason


def test_a_volume_is_deleted_only_when_every_cluster_confirms_it(
    sim: Simulation, kestrel: TenantContext, unreliable: UnreliableProvisioner
) -> None:
    volume = sim.create_volume(kestrel, size_gib=30)
    lease = sim.create_lease(kestrel, offering(), volume=volume.pk)
    with pytest.raises(VolumeInUse, match=f"home is attached to {lease.name}, which is active"):
        delete(sim, kestrel, volume)
    sim.release_lease(lease)
    sim.run(10)
    unreliable.silent.add("north-1")
    going = delete(sim, kestrel, volume)
    assert (going.state, delete(sim, kestrel, going).state, going.version) == (V.DELETING, V.DELETING, 2)
    sim.run_with_sweeps(60)
    assert (reload_volume(volume).state, kestrel.quota_used(STORAGE)) == (V.DELETING, 30)
    assert 4 <= len(unreliable.calls) <= 8  # every ten seconds
    unreliable.silent.clear()
    sim.run_with_sweeps(20)
    gone = reload_volume(volume)
    assert (gone.state, gone.deleted_at is not None, gone.due_at, kestrel.quota_used(STORAGE)) == (
        V.DELETED,
        True,
        None,
        0,
    )
    assert not SimulatedVolume.objects.exists()
    assert_invariants_hold(sim)


def test_a_volume_in_a_frozen_cluster_is_not_deleted(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    sim.release_lease(sim.create_lease(kestrel, offering(), volume=volume.pk))
    sim.run(10)
    Cluster.objects.update(frozen="another cluster responds at this address")
    delete(sim, kestrel, volume)
    sim.run_with_sweeps(30)
    assert (reload_volume(volume).state, SimulatedVolume.objects.count()) == (V.DELETING, 1)
    Cluster.objects.update(frozen="")
    sim.run_with_sweeps(20)
    assert (reload_volume(volume).state, SimulatedVolume.objects.count()) == (V.DELETED, 0)


def test_a_deleted_volume_restored_with_its_cluster_is_deleted_again(
    sim: Simulation, unreliable: UnreliableProvisioner
) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, 1, 1), SimulatedRack("north-2", REGION, MODEL, 1, 1))
    kestrel, moved = create_tenant("Kestrel"), Cluster.objects.get(name="north-1")
    volume, kept = sim.create_volume(kestrel), sim.create_volume(kestrel, "kept")
    for each in (volume, kept):
        sim.release_lease(sim.create_lease(kestrel, offering("whole-gpu"), volume=each.pk))
        sim.run(10)
    delete(sim, kestrel, volume)
    sim.run_with_sweeps(20)
    with tenant_scope(kestrel.tenant.pk):
        lies = Cluster.objects.get(name="north-2")
        Volume.objects.filter(pk=volume.pk).update(cluster=lies, remaining_clusters=[moved.pk])
    SimulatedVolume.objects.create(name=volume.pk, size_gib=10, made_at=sim.now)
    unreliable.calls.clear()
    unreliable.silent.add("north-1")
    cluster_freeze.unfreeze_cluster(moved, why="it was restored", actor=OPERATOR, now=sim.now)
    sim.run_with_sweeps(20)
    assert set(unreliable.calls) == {"north-1", "north-2"}
    assert reload_volume(volume).due_at is not None
    unreliable.silent.clear()
    sim.run_with_sweeps(20)
    again_gone = reload_volume(volume)
    assert (again_gone.state, again_gone.due_at, kestrel.quota_used(STORAGE)) == (V.DELETED, None, 10)
    assert list(SimulatedVolume.objects.values_list("name", flat=True)) == [kept.pk]
    unreliable.calls.clear()
    sim.run_with_sweeps(20)
    assert unreliable.calls == []
    assert_invariants_hold(sim)


def test_a_repeated_deletion_returns_quota_once(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = sim.create_volume(kestrel, size_gib=30)
    volume_lifecycle.reconcile_volume(volume.pk, volume.tenant_id, now=sim.now)  # it is not being deleted
    assert reload_volume(volume).state == V.READY
    sim.create_volume(kestrel, "other", size_gib=7)
    delete(sim, kestrel, volume)
    stale = reload_volume(volume)
    sim.run(1)
    with tenant_scope(kestrel.tenant.pk):
        volume_lifecycle._finish_deletion(stale, sim.now)
    assert kestrel.quota_used(STORAGE) == 7


def test_a_simulated_volume_is_deleted_after_a_delay_and_an_unknown_one_at_once(sim: Simulation) -> None:
    provisioner, kept = SimulatedProvisioner(), VolumeRef("vol_1", 5)
    assert provisioner.remove_volume(kept, now=NOW).seen is ObservedState.GONE
    SimulatedVolume.objects.create(name="vol_1", size_gib=5, made_at=NOW)
    first = provisioner.remove_volume(kept, now=NOW)
    assert (first.seen, first.text) == (ObservedState.PENDING, "being deleted")
    again_at = SimulatedVolume.objects.get().gone_at
    assert again_at
    assert provisioner.remove_volume(kept, now=NOW).seen is ObservedState.PENDING
    assert provisioner.remove_volume(kept, now=again_at).seen is ObservedState.GONE


def run_concurrently(count: int, act: Callable[[int], object]) -> list[str]:
    """Run the same in many threads; return each outcome."""
    barrier, found = Barrier(count), list[str]()

    def one(number: int) -> None:
        barrier.wait()
        try:
            found.append(type(act(number)).__name__)
        except ProblemError as refusal:
            found.append(refusal.code)
        finally:
            connection.close()

    threads = [Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found)


def test_only_one_of_ten_concurrent_requests_gets_the_volume(own_database: OwnDatabase) -> None:
    with simulate() as sim:
        create_gpus(8)
        kestrel = create_tenant("Kestrel")
        volume, what = sim.create_volume(kestrel), offering()

        def ask(number: int) -> Lease:
            with tenant_scope(kestrel.tenant.pk):
                wanted = LeaseRequest(what.pk, f"race-{number}", 3600, volume=volume.pk)
                return request_lease(wanted, project=kestrel.project, actor=kestrel.actor, now=NOW)

        assert run_concurrently(10, ask) == ["Lease"] + ["volume-in-use"] * 9


def test_concurrent_volume_requests_never_exceed_the_storage_quota(
    own_database: OwnDatabase, settings: LazySettings
) -> None:
    settings.DEFAULT_TENANT_STORAGE_GIB = 50
    with simulate() as sim:
        kestrel = create_tenant("Kestrel")
        found = run_concurrently(12, lambda number: sim.create_volume(kestrel, f"volume-{number}", size_gib=10))
        assert found == ["Volume"] * 5 + ["quota-exceeded"] * 7
        assert kestrel.quota_used(STORAGE) == 50
