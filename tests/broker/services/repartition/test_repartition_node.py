"""Repartition of a node, step by step, and its failures."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Gpu, Node, Repartition, SimulatedNode
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.simulated_partitioner import SimulatedPartitioner
from broker.services.clusters.registration import cluster_registration
from broker.services.reconciler import lease_reconciler
from broker.services.repartition import (
    layout_rows,
    repartition_decisions,
    repartition_reconciler,
    repartition_records,
)
from tenants.services.errors import StaleVersion
from tests.broker.services.repartition.fixed_layouts import (
    ONES,
    THREES,
    Driver,
    approve_repartition,
    break_node,
    create_fixed_nodes,
    layout_of,
    propose_repartition,
)
from tests.simulation import OPERATOR, Simulation, TenantContext, create_tenant, offering, reload_lease

HAPPY = "planned closing draining configuring repartitioning reopening done"


@pytest.fixture
def node(sim: Simulation) -> Node:
    return create_fixed_nodes()[0]


@pytest.fixture
def kestrel(node: Node) -> TenantContext:
    return create_tenant("Kestrel")


def request_unavailable_profile(kestrel: TenantContext, sim: Simulation) -> None:
    """Request a profile that no GPU has."""
    sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)


def test_an_approved_plan_changes_the_layout_and_serves_the_waiting_lease(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    waiting = sim.request_lease(kestrel, offering("3g.40gb"), quantity=2)
    sim.run(180)
    assert reload_lease(waiting).state == LeaseState.QUEUED
    driver = Driver(sim, approve_repartition(node, sim))
    assert driver.until(RepartitionStep.DONE) < 120
    assert driver.path == HAPPY
    assert sorted(str(layout_rows.current_layout(gpu)) for gpu in Gpu.objects.all()) == sorted([str(ONES), str(THREES)])
    assert not SimulatedNode.objects.get(node=node.pk).tainted
    sim.run(30)
    assert reload_lease(waiting).state == LeaseState.ACTIVE


def test_no_lease_is_placed_on_a_node_during_its_repartition(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    small = sim.request_lease(kestrel, offering("1g.10gb"))
    for _ in range(3):
        sim.run(5)
        driver.on()
    assert reload_lease(small).state == LeaseState.QUEUED
    driver.until(RepartitionStep.DONE)
    sim.run(30)
    assert reload_lease(small).state == LeaseState.ACTIVE


@pytest.mark.deep
def test_a_repartition_waits_until_running_leases_end(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    paid = sim.create_lease(kestrel, offering("1g.10gb"), max_duration_s=1800)
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    for _ in range(100):
        sim.run_with_sweeps(5)
        driver.on(0)
    assert driver.step is RepartitionStep.DRAINING
    assert driver.change.why == "1 slice is still in use; 1 pod still running"
    assert reload_lease(paid).state == LeaseState.ACTIVE
    sim.run_with_sweeps(1800)
    assert reload_lease(paid).end_reason == "expired"
    driver.until(RepartitionStep.DONE)


@pytest.mark.deep
def test_a_hanging_mig_manager_is_recovered_within_twelve_minutes(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    request_unavailable_profile(kestrel, sim)
    break_node(node, "wedges")
    driver = Driver(sim, approve_repartition(node, sim))
    assert driver.until(RepartitionStep.DONE) <= 12 * 60
    assert driver.path == "planned closing draining configuring repartitioning retrying repartitioning reopening done"
    assert driver.change.attempts == 2


def test_a_slow_node_is_not_retried(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    break_node(node, "dawdles")
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.DONE, minutes=10)
    assert driver.path == HAPPY


@pytest.mark.parametrize("ills", [["fails"], ["wedges", "wedges", "wedges"]])
def test_a_node_that_fails_or_hangs_repeatedly_is_quarantined(
    sim: Simulation, node: Node, kestrel: TenantContext, ills: list[str]
) -> None:
    request_unavailable_profile(kestrel, sim)
    break_node(node, *ills)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.QUARANTINED)
    assert not Gpu.objects.sellable().exists()
    assert SimulatedNode.objects.get(node=node.pk).tainted
    assert "failed" in driver.change.why or "after 2 requests" in driver.change.why


@pytest.mark.parametrize(("back", "cut"), [(False, THREES), (True, ONES)])
def test_a_quarantined_repartition_is_retried_or_rolled_back(
    sim: Simulation, node: Node, kestrel: TenantContext, back: bool, cut: object
) -> None:
    request_unavailable_profile(kestrel, sim)
    break_node(node, "fails")
    first = Driver(sim, approve_repartition(node, sim))
    first.until(RepartitionStep.QUARANTINED)
    decide = repartition_decisions.roll_back_repartition if back else repartition_decisions.retry_repartition
    second = Driver(sim, decide(first.change, why="looked at it", actor=OPERATOR, now=sim.now))
    second.until(RepartitionStep.DONE)
    assert cut in [layout_rows.current_layout(gpu) for gpu in Gpu.objects.all()]
    assert Gpu.objects.sellable().count() == 2
    with pytest.raises(repartition_decisions.RepartitionNotPossible):
        decide(first.change, why="twice", actor=OPERATOR, now=sim.now)


def test_a_repartition_can_be_cancelled_until_it_is_applied(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    paid = sim.create_lease(kestrel, offering("1g.10gb"))
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.on()
    assert driver.on() is RepartitionStep.DRAINING
    assert SimulatedNode.objects.get(node=node.pk).tainted
    repartition_decisions.cancel_repartition(driver.change, why="not today", actor=OPERATOR, now=sim.now)
    assert not Gpu.objects.sellable().exists()  # the taint is there still
    assert driver.on() is RepartitionStep.CANCELLED
    assert Gpu.objects.sellable().count() == 2
    assert not SimulatedNode.objects.get(node=node.pk).tainted
    assert reload_lease(paid).state == LeaseState.ACTIVE
    assert driver.on() is RepartitionStep.CANCELLED


def test_a_repartition_in_progress_cannot_be_cancelled(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.REPARTITIONING)
    with pytest.raises(repartition_decisions.RepartitionNotPossible) as refused:
        repartition_decisions.cancel_repartition(driver.change, why="too late", actor=OPERATOR, now=sim.now)
    assert "already being changed" in refused.value.detail


def test_a_planned_repartition_is_cancelled_at_once(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    change = propose_repartition(node, sim)
    repartition_decisions.cancel_repartition(change, why="no", actor=OPERATOR, now=sim.now)
    assert change.step == RepartitionStep.CANCELLED
    assert Gpu.objects.sellable().count() == 2
    with pytest.raises(repartition_decisions.RepartitionNotPossible):
        repartition_decisions.approve_repartition(change, actor=OPERATOR, now=sim.now)


def test_a_step_not_in_the_state_table_is_refused(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    with pytest.raises(ValueError, match="planned cannot become reopening"):
        repartition_records.set_repartition_step(
            propose_repartition(node, sim), RepartitionStep.REOPENING, why="a hurry", now=sim.now
        )


def test_approving_an_outdated_plan_is_refused(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    change = propose_repartition(node, sim)
    layout_rows.store_gpu_layout(Gpu.objects.order_by("index")[0], THREES)
    with pytest.raises(StaleVersion):
        repartition_decisions.approve_repartition(change, actor=OPERATOR, now=sim.now)


def test_approving_a_plan_of_a_cordoned_node_is_refused(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    change = propose_repartition(node, sim)
    Node.objects.update(state="cordoned")
    change.node.refresh_from_db()
    with pytest.raises(repartition_decisions.RepartitionNotPossible):
        repartition_decisions.approve_repartition(change, actor=OPERATOR, now=sim.now)


def test_a_plan_cannot_be_approved_twice(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    mine = propose_repartition(node, sim)
    theirs = Repartition.objects.select_related("node__cluster").get(pk=mine.pk)
    repartition_decisions.approve_repartition(theirs, actor=OPERATOR, now=sim.now)
    with pytest.raises(StaleVersion):
        repartition_decisions.approve_repartition(mine, actor=OPERATOR, now=sim.now)


def test_an_unreachable_cluster_is_retried(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.REPARTITIONING)

    def silent(*args: object, **more: object) -> None:
        raise ClusterUnreachable("no route to host")

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedPartitioner, "observe", silent)
        assert driver.on() is RepartitionStep.REPARTITIONING
        assert driver.change.why == "the cluster does not respond: no route to host"
    driver.until(RepartitionStep.DONE)


def test_a_repartition_claimed_by_another_worker_waits_for_that_claim(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    Repartition.objects.update(claimed_until=sim.now + repartition_reconciler.CLAIM)
    assert driver.on(1) is RepartitionStep.CLOSING
    assert repartition_reconciler.due_repartitions(now=sim.now) == []
    assert driver.on(30) is RepartitionStep.DRAINING  # that worker is dead
    assert repartition_reconciler.due_repartitions(now=sim.now) == [
        ("broker.reconcile_repartition", driver.change.pk, "")
    ]


def test_a_worker_with_an_expired_claim_changes_nothing(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    taint = SimulatedPartitioner.taint

    def slow(self: SimulatedPartitioner, *args: object, **more: object) -> None:
        taint(self, *args, **more)  # type: ignore[arg-type]
        monkeypatch.setattr(SimulatedPartitioner, "taint", taint)
        driver.on(31)  # another worker, once our claim is over

    monkeypatch.setattr(SimulatedPartitioner, "taint", slow)
    repartition_reconciler.reconcile_repartition(driver.change.pk, now=sim.now)
    assert driver.step is RepartitionStep.DRAINING
    assert driver.path == "planned closing draining"


def test_a_node_that_changes_during_observation_is_not_configured(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.CONFIGURING)
    look = SimulatedPartitioner.observe

    def then_changes(self: SimulatedPartitioner, *args: object, **more: object) -> object:
        seen = look(self, *args, **more)  # type: ignore[arg-type]
        SimulatedNode.objects.update(version=99)
        return seen

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedPartitioner, "observe", then_changes)
        assert driver.on() is RepartitionStep.CONFIGURING
        assert driver.change.why == "the node changed while it was read"
    driver.until(RepartitionStep.DONE)


def test_a_layout_is_applied_only_after_the_node_has_read_it(
    sim: Simulation, node: Node, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.CONFIGURING)
    with monkeypatch.context() as patched:
        patched.setattr(SimulatedPartitioner, "prepare", lambda *_, **__: timedelta(seconds=30))
        assert driver.on() is RepartitionStep.CONFIGURING
        assert driver.change.why == "waiting for the node to read the layout, another 30 s"
    assert SimulatedNode.objects.get().config == ""
    driver.until(RepartitionStep.DONE)


def test_a_removed_taint_is_set_again(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, offering("1g.10gb"))
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.DRAINING)
    SimulatedNode.objects.update(tainted=False)
    driver.on()
    assert SimulatedNode.objects.get().tainted


def test_a_cluster_without_a_partitioner_is_left_unchanged(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    node.cluster.provisioner = "elsewhere"
    node.cluster.save()
    assert driver.on() is RepartitionStep.CLOSING


def test_a_node_without_gpus_is_quarantined(sim: Simulation, node: Node, kestrel: TenantContext) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.CONFIGURING)
    Gpu.objects.all().delete()
    assert driver.on() is RepartitionStep.QUARANTINED
    assert layout_of(node) == {}


def test_inventory_of_a_node_is_ignored_during_its_repartition(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    driver.until(RepartitionStep.REPARTITIONING)
    silent = DiscoveredNode(node.name, gpus=(), problems=())
    cluster_registration.update_inventory(node.cluster, [silent], now=sim.now)
    assert set(Gpu.objects.values_list("health", flat=True)) == {"healthy"}
    driver.until(RepartitionStep.DONE)
    cluster_registration.update_inventory(node.cluster, [silent], now=sim.now)
    assert set(Gpu.objects.values_list("health", flat=True)) == {"unhealthy"}


def test_lost_gpus_of_a_repartitioning_node_do_not_end_leases(
    sim: Simulation, node: Node, kestrel: TenantContext
) -> None:
    """A repartition waits for an empty node and ends no lease."""
    lease = sim.create_lease(kestrel, offering("1g.10gb"))
    request_unavailable_profile(kestrel, sim)
    driver = Driver(sim, approve_repartition(node, sim))
    Repartition.objects.update(step=RepartitionStep.REPARTITIONING)
    Gpu.objects.update(health="unhealthy", health_since=sim.now, lost_since=sim.now)
    for _ in range(3):
        sim.clock.at += timedelta(minutes=2)
        lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert list(reload_lease(lease).conditions) == ["repartitioning"]
    Repartition.objects.filter(pk=driver.change.pk).update(step=RepartitionStep.QUARANTINED)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    assert reload_lease(lease).end_reason == "device_lost"
