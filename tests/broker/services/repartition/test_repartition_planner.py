"""Layout plans follow demand, and change nothing until they are approved."""

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


def planned(node: Node, sim: Simulation) -> list[Repartition]:
    return repartition_planner.propose_repartitions(node.cluster_id, now=sim.now)


def test_nothing_is_planned_for_what_waits_only_a_moment(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(60)
    assert planned(node, sim) == []
    sim.run(120)
    (change,) = planned(node, sim)
    assert change.gain_milli == 499
    assert RepartitionLogEntry.objects.get(change=change).why.startswith("1 GPU repartitioned, to serve 0.")


def test_a_plan_that_says_the_same_stays_and_another_one_takes_its_place(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    lease = sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    first = propose_repartition(node, sim)
    assert [change.pk for change in planned(node, sim)] == [first.pk]
    sim.release_lease(lease)
    sim.request_lease(kestrel, offering("7g.80gb"))
    sim.run(180)
    (second,) = planned(node, sim)
    assert second.pk != first.pk
    first.refresh_from_db()
    assert (first.step, first.why) == (RepartitionStep.CANCELLED, "replaced by another plan")
    for _ in range(2):
        assert [change.pk for change in planned(node, sim)] == [second.pk]


def test_a_gpu_with_a_lease_keeps_its_cut(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=1800)
    sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)
    gpu = Gpu.objects.get(pk=held_allocations(lease)[0].gpu_id)
    (change,) = planned(node, sim)
    assert change.layouts[gpu.index] == ONES
    assert change.layouts[1 - gpu.index] == THREES


def test_a_node_that_would_stand_closed_for_long_is_left_alone(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=20_000)
    sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)
    assert planned(node, sim) == []


def test_a_lease_that_is_not_active_yet_has_no_end_to_wait_for(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    sim.request_lease(kestrel, offering("1g.10gb"), image="slow/image")
    sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)
    assert planned(node, sim) == []


@pytest.mark.parametrize("state", [NodeState.CORDONED, NodeState.LOST])
def test_only_nodes_in_service_are_planned(
    sim: Simulation, node: Node, kestrel: TenantContext, state: NodeState
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    Node.objects.update(state=state)
    assert planned(node, sim) == []


def test_a_node_with_a_broken_gpu_is_left_alone(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    Gpu.objects.filter(index=0).update(health="unhealthy")
    assert planned(node, sim) == []


def test_gpus_cut_for_their_leases_and_shared_gpus_are_no_pool(sim: Simulation, node: Node) -> None:
    assert [pool.model for pool in load_repartition_pools(node.cluster_id, now=sim.now)] == ["H100-80GB"]
    Gpu.objects.filter(index=1).update(fixed_layout=[{"profile": "half", "start": 0, "size": 4, "isolation": "soft"}])
    assert load_repartition_pools(node.cluster_id, now=sim.now) == []
    Gpu.objects.update(layout_policy="dynamic", fixed_layout=[])
    assert load_repartition_pools(node.cluster_id, now=sim.now) == []


def test_a_node_that_calls_its_slices_gpus_is_never_cut_again(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    (change,) = planned(node, sim)
    for gpu in Gpu.objects.all():
        gpu.fixed_layout = [{**each, "asks": "nvidia.com/gpu"} for each in gpu.fixed_layout]
        gpu.save()
    with pytest.raises(StaleVersion):
        repartition_decisions.approve_repartition(change, actor=OPERATOR, now=sim.now)
    assert planned(node, sim) == []


def test_demand_is_what_runs_waits_and_ended_lately(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
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


def test_a_cluster_that_cuts_its_nodes_itself_begins_at_once(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "send", lambda *hint: None)
    waiting = sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    assert "nodes are repartitioned" in reload_lease(waiting).pending_reason
    tasks.sweep_all()
    tasks.plan_repartitions(node.cluster_id)
    sim.run_with_sweeps(180)
    assert reload_lease(waiting).state == "active"
    assert RepartitionLogEntry.objects.get(step="closing").actor_label == "broker"


def test_a_cluster_that_asks_first_only_plans(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    Cluster.objects.update(auto_repartition=False)
    repartition_planner.plan_and_approve(node.cluster_id, now=sim.now)
    assert Repartition.objects.get().step == RepartitionStep.PLANNED


def test_a_request_that_no_layout_will_serve_is_refused_at_once(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    Cluster.objects.update(auto_repartition=False)
    with pytest.raises(PlacementImpossible):
        sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)


@pytest.mark.deep
def test_a_node_that_was_cut_rests_for_a_while(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    repartition_planner.plan_and_approve(node.cluster_id, now=sim.now)
    sim.run_with_sweeps(150)
    assert Repartition.objects.get().step == RepartitionStep.DONE
    sim.request_lease(kestrel, offering("7g.80gb"))
    sim.run(300)
    assert planned(node, sim) == []
    sim.run_with_sweeps(3600)
    assert len(planned(node, sim)) == 1


def test_only_profiles_that_a_node_supports_are_planned(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    tells(monkeypatch, {node.pk: {"1g.10gb": 7, "4g.40gb": 1}})
    assert planned(node, sim) == []

    def silent(*_: object) -> None:
        raise ClusterUnreachable("no route to host")

    monkeypatch.setattr(SimulatedPartitioner, "profiles", silent)
    assert planned(node, sim) == []
    monkeypatch.undo()
    assert len(planned(node, sim)) == 1


def tells(monkeypatch: pytest.MonkeyPatch, found: dict[str, dict[str, int]]) -> None:
    monkeypatch.setattr(SimulatedPartitioner, "profiles", lambda _, machines: found)


def test_a_node_that_does_not_say_what_it_can_keeps_its_cut(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    mute, other = create_fixed_nodes(nodes=2, gpus_per_node=1)
    waiting = sim.request_lease(create_tenant("Kestrel"), offering("3g.40gb"), quantity=4)
    sim.run(180)
    tells(monkeypatch, {other.pk: {"1g.10gb": 7, "3g.40gb": 2}})
    (change,) = planned(mute, sim)
    assert change.node == other
    assert reload_lease(waiting).state == "queued"
    tells(monkeypatch, {})
    assert planned(mute, sim) == []
    monkeypatch.undo()
    assert {each.node for each in planned(mute, sim)} == {mute, other}


def test_nodes_that_differ_become_only_what_all_of_them_can(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = create_fixed_nodes(nodes=2, gpus_per_node=1)
    sim.request_lease(create_tenant("Kestrel"), offering("3g.40gb"), quantity=4)
    sim.run(180)
    tells(monkeypatch, {one.pk: {"1g.10gb": 7, "3g.40gb": 2}, other.pk: {"1g.10gb": 7}})
    assert planned(one, sim) == []
    tells(monkeypatch, {one.pk: {"1g.10gb": 7, "3g.40gb": 2}, other.pk: {"1g.10gb": 7, "3g.40gb": 1}})
    cuts = [dict(cut.counts) for each in planned(one, sim) for cut in each.layouts.values()]
    assert [cut.get("3g.40gb") for cut in cuts] == [1, 1]


def test_without_queued_leases_no_node_profiles_are_read(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[object] = []
    monkeypatch.setattr(SimulatedPartitioner, "profiles", lambda _, machines: requests.append(1) or {node.pk: None})
    sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=3600)
    assert planned(node, sim) == []
    assert requests == []
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    assert len(planned(node, sim)) == 1
    assert requests == [1]


def test_a_cluster_that_nobody_can_cut_is_not_planned(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run(180)
    Cluster.objects.update(provisioner="elsewhere")
    assert planned(node, sim) == []


def test_every_cluster_with_gpus_of_a_fixed_cut_is_looked_at(sim: Simulation, node: Node) -> None:
    assert repartition_planner.clusters_to_plan() == [("broker.plan_repartitions", node.cluster_id, "")]
    Gpu.objects.update(layout_policy="dynamic")
    assert repartition_planner.clusters_to_plan() == []


def test_uncut_gpus_are_cut_and_left_whole_by_the_same_rules(sim: Simulation) -> None:
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
