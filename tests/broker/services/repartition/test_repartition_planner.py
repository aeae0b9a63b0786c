"""Layout plans: demand, limits and approval."""

from datetime import timedelta

import pytest

from broker import tasks
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Cluster, Gpu, Node, NodeState, Repartition, RepartitionLogEntry
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.simulated_partitioner import SimulatedPartitioner
from broker.services.leases.lease_requests import PlacementImpossible
from broker.services.repartition import layout_rows, repartition_decisions, repartition_planner
from broker.services.repartition.repartition_pools import load_repartition_pools
from ports import outbox
from tenants.services.errors import StaleVersion
from tests.broker.services.repartition.fixed_layouts import ONES, THREES, create_fixed_nodes, propose_repartition
from tests.simulation import (
    OPERATOR,
    Simulation,
    TenantContext,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    soft_offering,
)


@pytest.fixture
def node(sim: Simulation) -> Node:
    return create_fixed_nodes()[0]


@pytest.fixture
def kestrel(node: Node) -> TenantContext:
    return create_tenant("Kestrel")


def propose_plans(node: Node, sim: Simulation) -> list[Repartition]:
    return repartition_planner.propose_repartitions(node.cluster_id, now=sim.now)


def test_no_plan_is_made_for_a_lease_that_waits_only_briefly(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(60)
    assert propose_plans(node, sim) == []
    sim.run(120)
    (change,) = propose_plans(node, sim)
    assert change.gain_milli == 499
    assert RepartitionLogEntry.objects.get(change=change).why.startswith("1 GPU repartitioned, to serve 0.")


def test_an_identical_plan_is_kept_and_a_different_one_replaces_it(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    lease = sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    first = propose_repartition(node, sim)
    assert [change.pk for change in propose_plans(node, sim)] == [first.pk]
    sim.release_lease(lease)
    sim.request_lease(kestrel, offering("7g.80gb"))
    sim.run(180)
    (second,) = propose_plans(node, sim)
    assert second.pk != first.pk
    first.refresh_from_db()
    assert (first.step, first.why) == (RepartitionStep.CANCELLED, "replaced by another plan")
    for _ in range(2):
        assert [change.pk for change in propose_plans(node, sim)] == [second.pk]


def test_a_gpu_with_a_lease_keeps_its_layout(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=1800)
    sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)
    gpu = Gpu.objects.get(pk=held_allocations(lease)[0].gpu_id)
    (change,) = propose_plans(node, sim)
    assert change.layouts[gpu.index] == ONES
    assert change.layouts[1 - gpu.index] == THREES


def test_a_node_with_a_long_lease_is_not_planned(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=20_000)
    sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)
    assert propose_plans(node, sim) == []


def test_a_node_with_a_lease_that_is_not_active_yet_is_not_planned(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    sim.request_lease(kestrel, offering("1g.10gb"), image="slow/image")
    sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)
    assert propose_plans(node, sim) == []


@pytest.mark.parametrize("state", [NodeState.CORDONED, NodeState.LOST])
def test_nodes_out_of_service_are_not_planned(
    sim: Simulation, node: Node, kestrel: TenantContext, state: NodeState
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    Node.objects.update(state=state)
    assert propose_plans(node, sim) == []


def test_a_node_with_an_unhealthy_gpu_is_not_planned(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    Gpu.objects.filter(index=0).update(health="unhealthy")
    assert propose_plans(node, sim) == []


def test_dynamic_and_shared_gpus_are_in_no_repartition_pool(sim: Simulation, node: Node) -> None:
    assert [pool.model for pool in load_repartition_pools(node.cluster_id, now=sim.now)] == ["H100-80GB"]
    Gpu.objects.filter(index=1).update(fixed_layout=[{"profile": "half", "start": 0, "size": 4, "isolation": "soft"}])
    assert load_repartition_pools(node.cluster_id, now=sim.now) == []
    Gpu.objects.update(layout_policy="dynamic", fixed_layout=[])
    assert load_repartition_pools(node.cluster_id, now=sim.now) == []


def test_nodes_exposing_slices_as_nvidia_com_gpu_are_never_repartitioned(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    (change,) = propose_plans(node, sim)
    for gpu in Gpu.objects.all():
        gpu.fixed_layout = [{**each, "resource_name": "nvidia.com/gpu"} for each in gpu.fixed_layout]
        gpu.save()
    with pytest.raises(StaleVersion):
        repartition_decisions.approve_repartition(change, actor=OPERATOR, now=sim.now)
    assert propose_plans(node, sim) == []


def test_demand_includes_running_waiting_and_recently_ended_leases(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    soft_offering()
    sim.create_lease(kestrel, offering("1g.10gb"))
    sim.release_lease(sim.create_lease(kestrel, offering("1g.10gb")))
    sim.request_lease(kestrel, offering("2g.20gb"), quantity=2)
    sim.run(300)
    (pool,) = load_repartition_pools(node.cluster_id, now=sim.now)
    assert pool.demand == {"1g.10gb": 1500, "2g.20gb": 2000}
    sim.clock.at += timedelta(minutes=31)
    (pool,) = load_repartition_pools(node.cluster_id, now=sim.now)
    assert pool.demand["1g.10gb"] == 1000


def test_an_automatic_repartition_starts_without_approval(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "send", lambda *hint, **_: None)
    waiting = sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    assert "nodes are repartitioned" in reload_lease(waiting).pending_reason
    tasks.sweep_all()
    tasks.plan_repartitions(node.cluster_id)
    sim.run_with_sweeps(180)
    assert reload_lease(waiting).state == "active"
    assert RepartitionLogEntry.objects.get(step="closing").actor_label == "broker"


def test_a_cluster_without_automatic_repartition_only_plans(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    Cluster.objects.update(auto_repartition=False)
    repartition_planner.plan_and_approve(node.cluster_id, now=sim.now)
    assert Repartition.objects.get().step == RepartitionStep.PLANNED


def test_a_request_beyond_current_layouts_is_refused_without_auto_repartition(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    Cluster.objects.update(auto_repartition=False)
    with pytest.raises(PlacementImpossible):
        sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)


@pytest.mark.deep
def test_a_repartitioned_node_is_not_planned_again_for_a_while(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    repartition_planner.plan_and_approve(node.cluster_id, now=sim.now)
    sim.run_with_sweeps(150)
    assert Repartition.objects.get().step == RepartitionStep.DONE
    sim.request_lease(kestrel, offering("7g.80gb"))
    sim.run(300)
    assert propose_plans(node, sim) == []
    sim.run_with_sweeps(3600)
    assert len(propose_plans(node, sim)) == 1


def test_only_profiles_that_a_node_supports_are_planned(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    report_profiles(monkeypatch, {node.pk: {"1g.10gb": 7, "4g.40gb": 1}})
    assert propose_plans(node, sim) == []

    def silent(*_: object) -> None:
        raise ClusterUnreachable("no route to host")

    monkeypatch.setattr(SimulatedPartitioner, "profiles", silent)
    assert propose_plans(node, sim) == []
    monkeypatch.undo()
    assert len(propose_plans(node, sim)) == 1


def report_profiles(monkeypatch: pytest.MonkeyPatch, found: dict[str, dict[str, int]]) -> None:
    monkeypatch.setattr(SimulatedPartitioner, "profiles", lambda _, machines: found)


def test_a_node_without_reported_profiles_is_not_planned(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    mute, other = create_fixed_nodes(nodes=2, gpus_per_node=1)
    waiting = sim.request_lease(create_tenant("Kestrel"), offering("3g.40gb"), quantity=4)
    sim.run(180)
    report_profiles(monkeypatch, {other.pk: {"1g.10gb": 7, "3g.40gb": 2}})
    (change,) = propose_plans(mute, sim)
    assert change.node == other
    assert reload_lease(waiting).state == "queued"
    report_profiles(monkeypatch, {})
    assert propose_plans(mute, sim) == []
    monkeypatch.undo()
    assert {each.node for each in propose_plans(mute, sim)} == {mute, other}


def test_planned_layouts_use_only_profiles_that_all_nodes_support(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = create_fixed_nodes(nodes=2, gpus_per_node=1)
    sim.request_lease(create_tenant("Kestrel"), offering("3g.40gb"), quantity=4)
    sim.run(180)
    report_profiles(monkeypatch, {one.pk: {"1g.10gb": 7, "3g.40gb": 2}, other.pk: {"1g.10gb": 7}})
    assert propose_plans(one, sim) == []
    report_profiles(monkeypatch, {one.pk: {"1g.10gb": 7, "3g.40gb": 2}, other.pk: {"1g.10gb": 7, "3g.40gb": 1}})
    cuts = [dict(cut.counts) for each in propose_plans(one, sim) for cut in each.layouts.values()]
    assert [cut.get("3g.40gb") for cut in cuts] == [1, 1]


def test_without_queued_leases_no_node_profiles_are_read(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[object] = []
    monkeypatch.setattr(SimulatedPartitioner, "profiles", lambda _, machines: requests.append(1) or {node.pk: None})
    sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=3600)
    assert propose_plans(node, sim) == []
    assert requests == []
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    assert len(propose_plans(node, sim)) == 1
    assert requests == [1]


def test_a_cluster_without_a_partitioner_is_not_planned(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    Cluster.objects.update(provisioner="elsewhere")
    assert propose_plans(node, sim) == []


def test_only_clusters_with_fixed_layout_gpus_are_planned(sim: Simulation, node: Node) -> None:
    assert repartition_planner.clusters_to_plan() == [("broker.plan_repartitions", node.cluster_id, "")]
    Gpu.objects.update(layout_policy="dynamic")
    assert repartition_planner.clusters_to_plan() == []


def test_unpartitioned_gpus_are_partitioned_or_kept_whole_by_demand(sim: Simulation) -> None:
    (node,) = create_fixed_nodes(cut=layout_rows.EMPTY_LAYOUT.from_names(["whole-gpu"]))
    kestrel = create_tenant("Kestrel")
    whole = sim.request_lease(kestrel, offering("whole-gpu"), max_duration_s=600)
    slices = sim.request_lease(kestrel, offering("1g.10gb"), quantity=3)
    sim.run(180)
    change = propose_repartition(node, sim)
    assert sorted(map(str, change.layouts.values())) == ["1 × whole-gpu", "7 × 1g.10gb"]
    repartition_decisions.approve_repartition(change, actor=OPERATOR, now=sim.now)
    sim.run_with_sweeps(900)
    assert (reload_lease(whole).end_reason, reload_lease(slices).state) == ("expired", "active")
