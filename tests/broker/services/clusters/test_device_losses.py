"""Devices without names that disappear while leases hold them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from broker.domain.lifecycle.states import EndReason, Isolation, LeaseCondition, LeaseState
from broker.models import Cluster, Gpu, Lease, Node, Offering, OfferingState
from broker.provisioners.base import Observation, ObservedState, ProvisionSpec
from broker.provisioners.kubernetes.client.objects import ObservedPod
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredGpu, DiscoveredNode, DiscoveredSlice
from broker.provisioners.kubernetes.observe.pod_observation import observe_pods
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import gpu_catalogue
from broker.services.inventory.device_losses import NONE_OFFERED, SOME_MISSING
from broker.services.placement import available_capacity
from broker.services.reconciler import lease_reconciler
from tests.simulation import MODEL, Simulation, TenantContext, create_tenant, held_allocations, offering, reload_lease

WHOLE = (DiscoveredSlice(0, 8, "whole-gpu"),)
ECC = "its command failed: exit code 1: RuntimeError: CUDA error: uncorrectable ECC error encountered"
# In the form of the kubelet's feature gate ResourceHealthStatus (KEP-4680).
UNHEALTHY = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-6a1f0c3e-0010", "health": "Unhealthy"}]}]


def report_n1(sim: Simulation, gpus: int, *, all_unhealthy: bool = False) -> Node:
    """Let the node of the cluster offer so many GPUs."""
    found = tuple(DiscoveredGpu(index, f"n1/{index}", MODEL, Isolation.DEVICE, WHOLE) for index in range(gpus))
    node = DiscoveredNode("n1", found, offers_none=not gpus, all_unhealthy=all_unhealthy)
    cluster_registration.update_inventory(Cluster.objects.get(), [node], now=sim.now)
    return Node.objects.get()


@pytest.fixture
def kestrel(sim: Simulation, cluster: Cluster) -> TenantContext:
    """Sell a node with 4 GPUs, whose pods are simulated."""
    Cluster.objects.update(provisioner="simulated")
    report_n1(sim, 4)
    gpu_catalogue.derive_offerings(now=sim.now)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    return create_tenant("Kestrel")


def lease_gpus(sim: Simulation, owner: TenantContext, *counts: int) -> list[Lease]:
    """Return active leases on so many GPUs each."""
    made = [sim.create_lease(owner, offering("whole-gpu"), quantity=count) for count in counts]
    sim.run(30)
    return [reload_lease(each) for each in made]


def conditions(leases: Sequence[Lease]) -> list[dict[str, str]]:
    return [reload_lease(each).conditions for each in leases]


def states(leases: Sequence[Lease]) -> set[str]:
    return {reload_lease(each).state for each in leases}


def free() -> int:
    wanted = offering("whole-gpu")
    return available_capacity.count_available([wanted])[wanted.pk]


def observe_as(monkeypatch: pytest.MonkeyPatch, lease: Lease, observation: Observation) -> None:
    """Let the cluster report this of one lease."""
    simulated = SimulatedProvisioner.observe

    def observe(self: SimulatedProvisioner, spec: ProvisionSpec, **rest: Any) -> Observation:
        return observation if spec.lease_id == lease.pk else simulated(self, spec, **rest)

    monkeypatch.setattr(SimulatedProvisioner, "observe", observe)


def unhealthy_pod(sim: Simulation) -> Observation:
    """Return the observation of a running pod whose kubelet reports its device as unhealthy."""
    started = {"startedAt": sim.now.isoformat()}
    container = {"name": "main", "ready": True, "state": {"running": started}, "allocatedResourcesStatus": UNHEALTHY}
    ready = [{"type": "Ready", "status": "True"}]
    body = {
        "metadata": {"name": "p", "creationTimestamp": sim.now.isoformat()},
        "spec": {"nodeName": "n1", "restartPolicy": "Always"},
        "status": {"phase": "Running", "conditions": ready, "containerStatuses": [container]},
    }
    return observe_pods([msgspec.convert(body, ObservedPod)], ranks=1, now=sim.now)


def test_leases_of_a_node_with_too_few_devices_are_marked_and_none_is_ended(
    sim: Simulation, kestrel: TenantContext
) -> None:
    leases = lease_gpus(sim, kestrel, 1, 1, 1, 1)
    report_n1(sim, 3)
    sim.run(20)
    assert conditions(leases) == [{LeaseCondition.DEGRADED: SOME_MISSING}] * 4
    sim.run_with_sweeps(1200)
    assert states(leases) == {LeaseState.ACTIVE}


def test_a_node_with_too_few_devices_takes_nothing_new_and_says_why(sim: Simulation, kestrel: TenantContext) -> None:
    lease_gpus(sim, kestrel, 1, 1, 1, 1)
    node = report_n1(sim, 3)
    assert not Gpu.objects.sellable().exists()
    assert node.inventory_problem.startswith(
        "It offers 3 nvidia.com/gpu, and leases hold 4: a device failed, and its device plugin does not say which."
    )


def test_examined_leases_are_not_idle(sim: Simulation, kestrel: TenantContext) -> None:
    (lease, *_) = lease_gpus(sim, kestrel, 1, 1, 1, 1)
    report_n1(sim, 3)
    sim.run(20)
    assert reload_lease(lease).degraded_since is None


def test_leases_are_well_again_once_their_devices_are_back(sim: Simulation, kestrel: TenantContext) -> None:
    leases = lease_gpus(sim, kestrel, 1, 1, 1, 1)
    report_n1(sim, 3)
    sim.run(20)
    node = report_n1(sim, 4)
    sim.run(5)
    assert conditions(leases) == [{}] * 4
    assert (Gpu.objects.sellable().count(), node.inventory_problem) == (4, "")


def test_a_short_gap_of_a_device_is_not_shown_to_tenants(sim: Simulation, kestrel: TenantContext) -> None:
    leases = lease_gpus(sim, kestrel, 1, 1, 1, 1)
    report_n1(sim, 3)
    sim.run(8)
    report_n1(sim, 4)
    versions = [reload_lease(each).version for each in leases]
    sim.run(30)
    assert [reload_lease(each).version for each in leases] == versions


def test_a_lease_that_holds_more_devices_than_are_left_ends_as_device_lost(
    sim: Simulation, kestrel: TenantContext
) -> None:
    (lease,) = lease_gpus(sim, kestrel, 4)
    lost = sim.now
    report_n1(sim, 3)
    sim.run(2)
    assert LeaseCondition.UNREACHABLE in reload_lease(lease).conditions
    for _ in range(4):
        sim.run_with_sweeps(10)
        report_n1(sim, 3)
    ended = reload_lease(lease)
    assert (ended.end_reason, ended.ended_at) == (EndReason.DEVICE_LOST, lost.replace(microsecond=0))


def test_a_device_that_fails_beside_free_ones_ends_no_lease(sim: Simulation, kestrel: TenantContext) -> None:
    leases = lease_gpus(sim, kestrel, 1, 1, 1)
    report_n1(sim, 3)
    sim.run_with_sweeps(120)
    assert (states(leases), conditions(leases)) == ({LeaseState.ACTIVE}, [{}] * 3)


def test_as_many_gpus_are_sold_as_the_node_has_left(sim: Simulation, kestrel: TenantContext) -> None:
    """The affected lease has one of the devices that are left."""
    first, second, third, last = lease_gpus(sim, kestrel, 1, 1, 1, 1)
    for each in (first, second, third):
        sim.release_lease(each)
    sim.run(30)
    assert held_allocations(last)[0].gpu.index == 3
    report_n1(sim, 3)
    assert free() == 2


def test_the_lease_whose_kubelet_reports_its_device_as_unhealthy_is_the_lost_one(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = lease_gpus(sim, kestrel, 1, 1, 1, 1)
    affected, others = leases[2], [leases[0], leases[1], leases[3]]
    lost = sim.now
    observe_as(monkeypatch, affected, unhealthy_pod(sim))
    report_n1(sim, 3)
    sim.run(5)
    report_n1(sim, 3)
    sim.run_with_sweeps(60)
    ended = reload_lease(affected)
    assert ended.end_reason == EndReason.DEVICE_LOST
    assert ended.ended_at is not None
    assert ended.ended_at - lost < timedelta(seconds=5)
    assert conditions(others) == [{}] * 3


def test_an_unhealthy_device_is_charged_until_it_was_first_reported(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet gives no time, and each check would be another last sign of life."""
    (lease,) = lease_gpus(sim, kestrel, 1)
    lost = sim.now
    with monkeypatch.context() as reported:
        reported.setattr(SimulatedProvisioner, "observe", lambda self, spec, now: unhealthy_pod(sim))
        lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
        sim.run_with_sweeps(45)
    ended = reload_lease(lease)
    assert (ended.end_reason, ended.ended_at) == (EndReason.DEVICE_LOST, lost.replace(microsecond=0))


def test_a_program_that_fails_with_an_error_of_its_gpu_has_lost_it(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = lease_gpus(sim, kestrel, 1, 1, 1, 1)
    report_n1(sim, 3)
    sim.run(20)
    failed = Observation(ObservedState.ENDED, ECC, last_seen=sim.now, exit_code=1)
    observe_as(monkeypatch, leases[1], failed)
    sim.run_with_sweeps(120)
    assert reload_lease(leases[1]).end_reason == EndReason.DEVICE_LOST
    assert states([leases[0], *leases[2:]]) == {LeaseState.ACTIVE}


def test_an_error_of_a_gpu_is_the_programs_own_while_no_device_is_missing(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lease,) = lease_gpus(sim, kestrel, 1)
    observe_as(monkeypatch, lease, Observation(ObservedState.ENDED, ECC, last_seen=sim.now, exit_code=1))
    sim.run_with_sweeps(300)
    assert reload_lease(lease).end_reason == EndReason.BY_TENANT


def test_leases_are_marked_while_their_node_offers_no_device(sim: Simulation, kestrel: TenantContext) -> None:
    leases = lease_gpus(sim, kestrel, 1, 1)
    report_n1(sim, 0)
    sim.run(20)
    assert conditions(leases) == [{LeaseCondition.DEGRADED: NONE_OFFERED}] * 2
    sim.run_with_sweeps(1200)
    report_n1(sim, 0)
    sim.run_with_sweeps(60)
    assert states(leases) == {LeaseState.ACTIVE}


def test_a_lease_is_lost_if_the_plugin_reports_all_devices_as_unhealthy_for_long(
    sim: Simulation, kestrel: TenantContext
) -> None:
    (lease,) = lease_gpus(sim, kestrel, 1)
    lost = sim.now
    report_n1(sim, 0, all_unhealthy=True)
    sim.run_with_sweeps(290)
    report_n1(sim, 0, all_unhealthy=True)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    for _ in range(6):
        sim.run_with_sweeps(15)
        report_n1(sim, 0, all_unhealthy=True)
    ended = reload_lease(lease)
    assert (ended.end_reason, ended.ended_at) == (EndReason.DEVICE_LOST, lost.replace(microsecond=0))
