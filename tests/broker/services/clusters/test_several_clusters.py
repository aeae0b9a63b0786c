"""Provisioners of several clusters, of which one may be unreachable."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster
from broker.provisioners.base import (
    ClusterUnreachable,
    HeldPod,
    Observation,
    ObservedState,
    ProvisionSpec,
    spec_name,
)
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.clusters import orphan_removal
from broker.services.inventory import cluster_provisioners
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant, offering, reload_lease


class RecordingProvisioner:
    """A provisioner of one cluster that records its calls."""

    made: dict[str, "RecordingProvisioner"] = {}

    def __init__(self, cluster_id: str) -> None:
        self.calls: list[str] = []
        self.there: list[str] = []
        self.silent = False
        self.made[cluster_id] = self

    def ensure(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        self.calls.append(f"ensure {order.name}")
        return Observation(ObservedState.READY, "readiness verified")

    def observe(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        return Observation(ObservedState.READY)

    def let_go(self, order: ProvisionSpec, remains: tuple[HeldPod, ...]) -> None:
        self.calls.append(f"let go {' '.join(each.name for each in remains)}")

    def remove(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        self.calls.append(f"remove {order.name}")
        return Observation(ObservedState.GONE)

    def names(self) -> list[str]:
        if self.silent:
            raise ClusterUnreachable("nobody is there")
        return list(self.there)

    def remove_named(self, name: str, *, now: datetime) -> None:
        self.there.remove(name)


@pytest.fixture
def recording_provisioners(settings: Any) -> Iterator[dict[str, RecordingProvisioner]]:
    settings.PROVISIONERS = {"remembered": f"{__name__}.RecordingProvisioner"}
    RecordingProvisioner.made.clear()
    yield RecordingProvisioner.made
    cluster_provisioners._load_for_cluster.cache_clear()


def test_a_lease_is_provisioned_by_the_provisioner_of_its_cluster(
    sim: Simulation, recording_provisioners: dict[str, RecordingProvisioner]
) -> None:
    create_gpus(1)
    Cluster.objects.update(provisioner="remembered")
    kestrel = create_tenant()
    lease = sim.create_lease(kestrel, offering())
    sim.run_with_sweeps(60)
    assert reload_lease(lease).state == "active"
    with tenant_scope(kestrel.tenant.pk):
        order = load_provision_spec(reload_lease(lease))
    (cluster,) = Cluster.objects.all()
    assert (order.cluster, order.slices[0].host, order.slices[0].grid) == (cluster.pk, "n01", 8)
    assert order.paid_until == reload_lease(lease).ends_at
    assert recording_provisioners[cluster.pk].calls == [f"ensure {order.name}"]


def test_a_cluster_without_its_own_provisioner_is_simulated(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    with tenant_scope(lease.tenant_id):
        assert isinstance(
            cluster_provisioners.provisioner_of(load_provision_spec(reload_lease(lease))), SimulatedProvisioner
        )


def test_orphans_are_removed_in_every_reachable_cluster(
    sim: Simulation, recording_provisioners: dict[str, RecordingProvisioner]
) -> None:
    create_gpus(1)
    for name in ("east", "west"):
        made = Cluster.objects.create(
            name=name, region="eu", provisioner="remembered", driver="device_plugin", created_at=sim.now
        )
        over = sim.create_lease(create_tenant(name), offering(), LeaseState.RELEASED)
        cluster_provisioners._load_for_cluster(f"{__name__}.RecordingProvisioner", made.pk).there = [
            spec_name(over.pk, 1)
        ]  # type: ignore[attr-defined]
    east, west = recording_provisioners.values()
    east.silent = True
    assert orphan_removal.remove_orphans(now=sim.now) == 1
    assert (len(east.there), west.there) == (1, [])
    east.silent = False
    assert orphan_removal.remove_orphans(now=sim.now) == 1
