"""Leases and volumes that block the removal of a cluster."""

import pytest

from broker.domain.lifecycle.states import LeaseState, VolumeState
from broker.models import Allocation, Cluster, Volume
from broker.provisioners.base import spec_name
from broker.services.clusters.registration import cluster_removal
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant, offering


@pytest.mark.parametrize(
    ("state", "counts"),
    [(LeaseState.PROVISIONING, True), (LeaseState.ACTIVE, True), (LeaseState.RELEASING, False)],
)
def test_only_starting_or_running_leases_need_their_cluster(sim: Simulation, state: LeaseState, counts: bool) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), state)
    there = [spec_name(lease.pk, lease.generation), "unknown", spec_name("lse_" + "0" * 26, 1)]
    assert cluster_removal.leases_needing_cluster(there) == ([lease.pk] if counts else [])


def test_another_generation_of_a_lease_does_not_need_the_cluster(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    assert cluster_removal.leases_needing_cluster([spec_name(lease.pk, lease.generation + 1)]) == []
    assert cluster_removal.leases_needing_cluster([]) == []


@pytest.mark.parametrize(
    ("uid", "provisioner", "is_there"),
    [
        ("u-1", "kubernetes", True),
        ("", "kubernetes", True),
        ("u-2", "kubernetes", False),
        ("", "simulated", False),
    ],
)
def test_a_releasing_lease_is_unfinished_until_its_slot_is_free(
    sim: Simulation, uid: str, provisioner: str, is_there: bool
) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), LeaseState.RELEASING)
    Cluster.objects.update(uid=uid, provisioner=provisioner)
    assert cluster_removal.unfinished_work("u-1") == ([lease.pk] if is_there else [])
    with tenant_scope(lease.tenant_id):
        Allocation.objects.update(released_at=sim.now)
    assert cluster_removal.unfinished_work("u-1") == []


@pytest.mark.parametrize("where", ["there", "remaining there", "elsewhere"])
def test_a_deleting_volume_blocks_removal_of_every_cluster_it_remains_in(sim: Simulation, where: str) -> None:
    create_gpus(1)
    Cluster.objects.update(uid="u-1", provisioner="kubernetes")
    there = Cluster.objects.get()
    volume = sim.create_volume(create_tenant())
    places = {"there": {"cluster": there}, "remaining there": {"remaining_clusters": [there.pk]}}
    with tenant_scope(volume.tenant_id):
        Volume.objects.filter(pk=volume.pk).update(**places.get(where, {}))
    assert cluster_removal.unfinished_work("u-1") == [], "a volume that is kept is its tenant's, and stays"
    with tenant_scope(volume.tenant_id):
        Volume.objects.filter(pk=volume.pk).update(state=VolumeState.DELETING)
    assert cluster_removal.unfinished_work("u-1") == ([] if where == "elsewhere" else [volume.pk])
