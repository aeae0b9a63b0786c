"""Abandoned placements in reports: held, not sold."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Cluster, Gpu, Lease, Node, Repartition
from broker.services.repartition import layout_rows as layout_gpus
from broker.services.repartition import repartition_pools, repartition_reconciler
from broker.services.reports import fleet_gpus, fleet_summary
from broker.services.reports.gpu_usage import SCALE, UnitUse
from tenants.services.rls import staff_scope, tenant_scope
from tests.broker.services.leases.abandoned_leases import (
    UnreliableClusters,
    abandon_placement,
    other_cluster,
    two_clusters,
)
from tests.simulation import Simulation

ONES = GpuLayout.from_names(["1g.10gb"] * 7)


@pytest.fixture
def unreliable(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> UnreliableClusters:
    return two_clusters(monkeypatch)


def test_a_lease_with_an_abandoned_placement_counts_as_one_sold_gpu(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    abandon_placement(sim, unreliable)
    with staff_scope():
        read, whole = fleet_summary.load_summary(), fleet_summary.summarise(fleet_gpus.load_gpus())
    assert (read.active, read.sold) == (1, SCALE)
    assert whole == read


def test_an_abandoned_placement_is_shown_as_reserved_without_an_end(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = abandon_placement(sim, unreliable)
    with staff_scope():
        by_cluster = {gpu.cluster_name: gpu for gpu in fleet_gpus.load_gpus()}
    (left,), (lived_in,) = by_cluster[first].slices, by_cluster[other_cluster(first)].slices
    assert {left.lease, lived_in.lease} == {lease.pk}
    assert (left.state, left.use, left.ends_at) == (LeaseState.RELEASING, UnitUse.RESERVED, None)
    with tenant_scope(lease.tenant_id):
        assert left.since == lease.allocations.exclude(leaving_since=None).get().leaving_since
    assert (lived_in.state, lived_in.use, lived_in.ends_at) == (
        LeaseState.ACTIVE,
        UnitUse.SOLD,
        lease.ends_at,
    )


def test_a_lease_is_repartitioning_only_if_its_current_node_is(sim: Simulation, unreliable: UnreliableClusters) -> None:
    lease, first = abandon_placement(sim, unreliable)

    def blinded(name: str) -> bool:
        Repartition.objects.all().delete()
        Repartition.objects.create(
            node=Node.objects.get(cluster__name=name),
            step=RepartitionStep.REPARTITIONING,
            wanted={},
            before={},
            planned_at=sim.now,
            step_at=sim.now,
            due_at=sim.now,
        )
        with tenant_scope(lease.tenant_id):
            return repartition_reconciler.is_node_repartitioning(Lease.objects.get(pk=lease.pk))

    assert [blinded(first), blinded(other_cluster(first))] == [False, True]


def test_the_planner_counts_no_end_and_no_demand_of_an_abandoned_placement(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    for gpu in Gpu.objects.all():
        layout_gpus.store_gpu_layout(gpu, ONES)
    Cluster.objects.update(auto_repartition=True)
    _, first = abandon_placement(sim, unreliable, what="1g.10gb")

    def seen(name: str) -> tuple[int | None, dict[str, int]]:
        (pool,) = repartition_pools.load_repartition_pools(Cluster.objects.get(name=name).pk, now=sim.now)
        (view,) = pool.views
        assert [gpu.in_use for gpu in view.gpus] == [True]
        return view.until_idle_s, pool.demand

    (left_waits, left_demand), (waits, demand) = seen(first), seen(other_cluster(first))
    assert (left_waits, left_demand) == (None, {})
    assert waits is not None
    assert timedelta(seconds=waits) < timedelta(hours=2)
    assert demand["1g.10gb"] > 0
