"""Charges of leases that are released after their program ended."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from broker.models import Cluster, ClusterObject, Lease
from broker.provisioners.base import spec_name
from broker.services.inventory.hardware import SimulatedRack
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    TenantContext,
    create_fleet,
    create_tenant,
    offering,
    reload_lease,
    transitions_of,
)

HALF_A_MINUTE = timedelta(seconds=30)


@pytest.fixture
def kestrel(db: None) -> TenantContext:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1))
    return create_tenant("Kestrel")


def timestamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def store_pod(lease: Lease, name: str, *, began: datetime, ended: datetime | None) -> None:
    """Let the agent observe a running or ended pod."""
    state: dict[str, Any] = {"running": {"startedAt": timestamp(began)}}
    if ended:
        state = {"terminated": {"exitCode": 0, "startedAt": timestamp(began), "finishedAt": timestamp(ended)}}
    status = {"phase": "Succeeded" if ended else "Running", "containerStatuses": [{"state": state}]}
    ClusterObject.objects.create(
        cluster=Cluster.objects.get(),
        kind="Pod",
        namespace="gt-1",
        name=name,
        uid=f"u-{name}",
        version=5,
        spec_name=spec_name(lease.pk, lease.generation),
        body={"metadata": {"name": name, "uid": f"u-{name}"}, "status": status},
        seen_at=began,
    )


def charged_until(lease: Lease) -> datetime:
    steps = transitions_of(lease)
    return next(step.at for step in steps if step.before == "active")


def test_a_lease_released_after_its_pod_ended_is_charged_until_that_end(
    sim: Simulation, kestrel: TenantContext
) -> None:
    lease = sim.create_lease(kestrel, offering("whole-gpu"))
    ended = sim.now + HALF_A_MINUTE
    store_pod(lease, "p-0", began=sim.now, ended=ended)
    sim.clock.at = ended + HALF_A_MINUTE
    sim.release_lease(lease)
    assert charged_until(lease) == reload_lease(lease).ended_at == ended.replace(microsecond=0)


def test_a_lease_stopped_after_its_pod_ended_is_charged_until_that_end(sim: Simulation, kestrel: TenantContext) -> None:
    volume = sim.create_volume(kestrel)
    lease = sim.create_lease(kestrel, offering("whole-gpu"), volume=volume.pk)
    began, ended = sim.now, sim.now + HALF_A_MINUTE
    store_pod(lease, "p-0", began=began, ended=ended)
    sim.clock.at = ended + HALF_A_MINUTE
    sim.stop_lease(lease, kestrel)
    assert charged_until(lease) == ended.replace(microsecond=0)
    assert lease.active_at
    assert reload_lease(lease).active_seconds == int((charged_until(lease) - lease.active_at).total_seconds())


@pytest.mark.parametrize("conditions", [{}, {"unreachable": "its node says nothing"}])
def test_a_pod_end_observed_during_an_outage_counts(
    sim: Simulation, kestrel: TenantContext, conditions: dict[str, str]
) -> None:
    lease = sim.create_lease(kestrel, offering("whole-gpu"))
    Cluster.objects.update(unreachable_since=sim.now)
    ended = sim.now + HALF_A_MINUTE
    store_pod(lease, "p-0", began=sim.now, ended=ended)
    with tenant_scope(lease.tenant_id):
        Lease.objects.update(conditions=conditions)
    ClusterObject.objects.update(seen_at=ended)
    sim.clock.at = ended + HALF_A_MINUTE
    sim.release_lease(lease)
    assert charged_until(lease) == ended.replace(microsecond=0)


def test_a_lease_with_a_running_pod_is_charged_until_its_release(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("whole-gpu"))
    store_pod(lease, "p-0", began=sim.now, ended=None)
    sim.clock.at += HALF_A_MINUTE
    sim.release_lease(lease)
    assert charged_until(lease) == sim.now.replace(microsecond=0)


@pytest.mark.parametrize("many", [1, 2])
def test_a_gang_is_charged_until_its_last_pod_ended(sim: Simulation, kestrel: TenantContext, many: int) -> None:
    lease, began = sim.create_lease(kestrel, offering("whole-gpu"), quantity=2), sim.now
    for rank in range(many):
        store_pod(lease, f"p-{rank}", began=began, ended=began + (rank + 1) * HALF_A_MINUTE)
    sim.clock.at = began + 3 * HALF_A_MINUTE
    sim.release_lease(lease)
    end = began + 2 * HALF_A_MINUTE if many == 2 else sim.now  # the other pod was never observed
    assert charged_until(lease) == end.replace(microsecond=0)


def test_a_pod_end_in_the_future_is_ignored(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("whole-gpu"))
    store_pod(lease, "p-0", began=sim.now, ended=sim.now + timedelta(hours=1))
    sim.clock.at += HALF_A_MINUTE
    sim.release_lease(lease)
    assert charged_until(lease) == sim.now.replace(microsecond=0)


@pytest.mark.parametrize(("later_s", "believed"), [(9, True), (11, False)])
def test_a_pod_end_contradicted_by_a_later_observation_is_ignored(
    sim: Simulation, kestrel: TenantContext, later_s: int, believed: bool
) -> None:
    """A stopped agent leaves outdated rows."""
    lease = sim.create_lease(kestrel, offering("whole-gpu"))
    ended = (sim.now + HALF_A_MINUTE).replace(microsecond=0)
    store_pod(lease, "p-0", began=sim.now, ended=ended)
    sim.clock.at = ended + HALF_A_MINUTE
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=ended + timedelta(seconds=later_s))
    sim.release_lease(lease)
    assert charged_until(lease) == (ended if believed else sim.now.replace(microsecond=0))


def test_a_pod_end_stored_after_the_last_observation_counts(sim: Simulation, kestrel: TenantContext) -> None:
    """A returning kubelet reports a late end."""
    lease = sim.create_lease(kestrel, offering("whole-gpu"))
    ended = (sim.now + HALF_A_MINUTE).replace(microsecond=0)
    looked = ended + HALF_A_MINUTE
    store_pod(lease, "p-0", began=sim.now, ended=ended)
    ClusterObject.objects.update(seen_at=looked + timedelta(seconds=1))
    sim.clock.at = looked + timedelta(seconds=2)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(seen_at=looked)
    sim.release_lease(lease)
    assert charged_until(lease) == ended
