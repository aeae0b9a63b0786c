"""Placements that a lease abandons, and when their slots are free."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Node
from broker.provisioners.base import Observation, ObservedState
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases import abandoned_placements
from broker.services.leases.lease_connections import lease_connections_of
from broker.services.leases.lifecycle import eviction
from broker.services.reconciler import lease_reconciler
from broker.services.reports import invariant_checks
from tenants.services.rls import staff_scope, tenant_scope
from tests.broker.services.leases.abandoned_leases import (
    UnreliableClusters,
    abandon_placement,
    cluster_of,
    find_cluster,
    holding_clusters,
    other_cluster,
    place_lease,
    two_clusters,
)
from tests.simulation import (
    MODEL,
    OPERATOR,
    REGION,
    Simulation,
    create_fleet,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    state_path,
    transitions_of,
)


@pytest.fixture
def unreliable(monkeypatch: pytest.MonkeyPatch) -> UnreliableClusters:
    return two_clusters(monkeypatch)


def assert_invariants_hold(sim: Simulation) -> None:
    with staff_scope():
        assert [proof for proof in invariant_checks.check_invariants(now=sim.now) if not proof.holds] == []


def test_a_lease_rejected_by_a_cluster_runs_in_the_next_with_a_recorded_reason(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = place_lease(sim)
    unreliable.full = {find_cluster(first).pk}
    sim.run(30)
    lease = reload_lease(lease)
    assert lease.state == LeaseState.ACTIVE
    assert cluster_of(lease) == other_cluster(first)
    assert state_path(lease) == "requested queued provisioning queued provisioning active"
    assert any("its node does not accept it" in step.cause for step in transitions_of(lease))
    assert holding_clusters(lease) == [other_cluster(first)]
    assert_invariants_hold(sim)


def test_a_lease_refused_by_a_cluster_runs_in_the_next_with_a_recorded_reason(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = place_lease(sim)
    unreliable.refuses = {find_cluster(first).pk}
    sim.run(30)
    assert (reload_lease(lease).state, cluster_of(lease)) == (LeaseState.ACTIVE, other_cluster(first))
    assert any("no route to its registry" in step.cause for step in transitions_of(lease))
    assert holding_clusters(lease) == [other_cluster(first)]
    assert_invariants_hold(sim)


def test_a_lease_refused_by_every_cluster_is_tried_once_in_each(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    create_fleet(SimulatedRack("north-3", REGION, MODEL, nodes=2, gpus_per_node=1))
    unreliable.refuses = {each.pk for each in Cluster.objects.all()}
    lease, _ = place_lease(sim)
    sim.run(60)
    lease = reload_lease(lease)
    assert (lease.state, lease.end_reason) == ("released", "spec_refused")
    assert state_path(lease).count("provisioning") == 3
    placed = [step.cause for step in transitions_of(lease) if step.after == "provisioning"]
    assert len({cause.split(" / ")[0] for cause in placed}) == 3


def test_a_refused_lease_without_capacity_elsewhere_ends_at_once(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    Cluster.objects.filter(name="north-2").update(unreachable_since=sim.now)
    lease, first = place_lease(sim)
    unreliable.refuses = {find_cluster(first).pk}
    sim.run(30)
    assert reload_lease(lease).end_reason == "spec_refused"
    assert state_path(lease).count("provisioning") == 1


@pytest.mark.deep
def test_a_lease_that_is_never_ready_is_tried_once_in_each_cluster(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    create_fleet(SimulatedRack("north-3", REGION, MODEL, nodes=1, gpus_per_node=1))
    unreliable.slow = {each.pk for each in Cluster.objects.all()}
    lease, _ = place_lease(sim)
    sim.run_with_sweeps(50 * 60)
    lease = reload_lease(lease)
    assert (lease.state, lease.end_reason) == ("released", "provision_timeout")
    placed = [step.cause for step in transitions_of(lease) if step.after == "provisioning"]
    assert len(placed) == len({cause.split(" / ")[0] for cause in placed}) == 3


@pytest.mark.deep
def test_a_start_in_an_unreachable_cluster_is_not_repeated_in_another(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = place_lease(sim)
    unreliable.slow = {find_cluster(first).pk}
    sim.run_with_sweeps(30)
    unreliable.silent = unreliable.slow
    sim.run_with_sweeps(20 * 60)
    assert reload_lease(lease).end_reason == "provision_timeout"
    assert state_path(lease).count("provisioning") == 1


def test_an_abandoned_slot_is_free_only_when_it_is_proven_empty(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = place_lease(sim)
    unreliable.full = unreliable.keeps = {find_cluster(first).pk}
    sim.run_with_sweeps(30)
    assert holding_clusters(lease) == [first, other_cluster(first)]
    assert_invariants_hold(sim)
    second = sim.request_lease(create_tenant("Wren"), offering("whole-gpu"))
    unreliable.full = set()
    sim.run_with_sweeps(30)
    assert reload_lease(second).state == LeaseState.QUEUED
    unreliable.keeps = set()
    sim.run_with_sweeps(30)
    assert reload_lease(second).state == LeaseState.ACTIVE
    assert cluster_of(second) == first
    assert holding_clusters(lease) == [other_cluster(first)]
    assert_invariants_hold(sim)


@pytest.mark.deep
def test_a_lease_does_not_start_while_an_earlier_placement_may_still_run(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = place_lease(sim)
    unreliable.full = unreliable.keeps = {find_cluster(first).pk}
    sim.run_with_sweeps(90)
    lease = reload_lease(lease)
    assert lease.state == LeaseState.PROVISIONING
    assert "still ending" in lease.progress["text"]
    assert unreliable.names() == []
    unreliable.keeps = set()
    sim.run_with_sweeps(30)
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_lease_does_not_start_while_its_earlier_placement_is_unconfirmed(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1))
    Cluster.objects.filter(name="north-2").update(unreachable_since=sim.now)
    lease, first = place_lease(sim)
    unreliable.full = unreliable.mute = {find_cluster(first).pk}
    sim.run(5)
    unreliable.full = set()
    sim.run_with_sweeps(30)
    assert holding_clusters(lease) == [first, first]
    assert unreliable.names() == []
    unreliable.mute = set()
    sim.run_with_sweeps(30)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert holding_clusters(lease) == [first]


def test_a_first_placement_checks_no_abandoned_ones(
    sim: Simulation, unreliable: UnreliableClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, _ = place_lease(sim)
    monkeypatch.setattr(abandoned_placements, "free_abandoned_placements", None)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    assert reload_lease(lease).progress["text"] != ""


def test_observations_of_an_earlier_placement_do_not_count_for_the_next(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    create_fleet(SimulatedRack("north-3", REGION, MODEL, nodes=1, gpus_per_node=1))
    lease, first = place_lease(sim)
    unreliable.full = unreliable.keeps = {find_cluster(first).pk}
    sim.run_with_sweeps(20)
    second = holding_clusters(lease)[-1]
    assert second != first
    unreliable.silent = {find_cluster(second).pk}
    unreliable.keeps = set()
    sim.run_with_sweeps(90)
    lease = reload_lease(lease)
    assert lease.state == LeaseState.ACTIVE
    assert cluster_of(lease) not in (first, second)


def test_an_unreachable_cluster_is_called_once_for_several_abandoned_placements(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=3, gpus_per_node=1))
    Cluster.objects.filter(name="north-2").update(unreachable_since=sim.now)
    lease, first = place_lease(sim)
    unreliable.full = unreliable.mute = {find_cluster(first).pk}
    sim.run_with_sweeps(70)
    assert holding_clusters(lease) == [first, first, first]
    unreliable.removal_requests.clear()
    abandoned_placements.free_abandoned_placements(lease.pk, lease.tenant_id, now=sim.now)
    assert len(unreliable.removal_requests) == 1


def test_a_placement_does_not_wait_for_another_unreachable_cluster(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = place_lease(sim)
    unreliable.full = unreliable.mute = {find_cluster(first).pk}
    sim.run(1)
    Cluster.objects.filter(name=first).update(unreachable_since=sim.now)
    unreliable.removal_requests.clear()
    beside = abandoned_placements.free_abandoned_placements(
        lease.pk, lease.tenant_id, now=sim.now, beside=find_cluster(other_cluster(first)).pk
    )
    assert (beside, unreliable.removal_requests) == ({}, [])
    assert (
        abandoned_placements.free_abandoned_placements(
            lease.pk, lease.tenant_id, now=sim.now, beside=find_cluster(first).pk
        )
        != {}
    )


def test_a_lease_may_end_before_its_abandoned_placement_is_empty(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = place_lease(sim)
    unreliable.full = unreliable.keeps = {find_cluster(first).pk}
    sim.run_with_sweeps(30)
    sim.release_lease(reload_lease(lease))
    sim.run_with_sweeps(60)
    assert reload_lease(lease).state == LeaseState.RELEASED
    assert holding_clusters(lease) == [first]
    assert_invariants_hold(sim)
    unreliable.keeps = set()
    sim.run_with_sweeps(10)
    assert holding_clusters(lease) == []


def test_a_lease_leaves_an_unreachable_cluster_after_45_seconds(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease, first = place_lease(sim)
    unreliable.silent = {find_cluster(first).pk}
    sim.run_with_sweeps(40)
    assert state_path(lease) == "requested queued provisioning"
    sim.run_with_sweeps(40)
    lease = reload_lease(lease)
    assert lease.state == LeaseState.ACTIVE
    assert holding_clusters(lease) == [first, other_cluster(first)]
    assert any("does not respond" in step.cause for step in transitions_of(lease))
    unreliable.silent = set()
    sim.run_with_sweeps(10)
    assert holding_clusters(lease) == [other_cluster(first)]
    assert_invariants_hold(sim)


def test_a_started_lease_waits_for_its_unreachable_cluster(sim: Simulation, unreliable: UnreliableClusters) -> None:
    lease, first = place_lease(sim)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    assert reload_lease(lease).progress
    unreliable.silent = {find_cluster(first).pk}
    sim.run_with_sweeps(120)
    assert holding_clusters(lease) == [first]
    assert reload_lease(lease).state == LeaseState.PROVISIONING


def test_no_lease_is_placed_in_an_unreachable_cluster(sim: Simulation, unreliable: UnreliableClusters) -> None:
    Cluster.objects.filter(name="north-1").update(unreachable_since=sim.now)
    kestrel = create_tenant()
    leases = [sim.request_lease(kestrel, offering("whole-gpu")) for _ in range(2)]
    sim.run_with_sweeps(30)
    assert sorted(reload_lease(each).state for each in leases) == ["active", "queued"]
    assert [cluster_of(each) for each in leases if reload_lease(each).state == "active"] == ["north-2"]


def test_a_rejecting_cluster_is_retried_after_two_minutes(sim: Simulation, unreliable: UnreliableClusters) -> None:
    Cluster.objects.filter(name="north-2").update(unreachable_since=sim.now)
    lease, first = place_lease(sim)
    unreliable.full = {find_cluster(first).pk}
    sim.run_with_sweeps(60)
    lease = reload_lease(lease)
    assert lease.state == LeaseState.QUEUED
    assert "rejected it" in lease.pending_reason
    unreliable.full = set()
    sim.run_with_sweeps(120)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert cluster_of(lease) == first


@pytest.mark.deep
def test_repeated_rejections_end_in_a_provision_timeout(sim: Simulation, unreliable: UnreliableClusters) -> None:
    unreliable.full = {find_cluster("north-1").pk, find_cluster("north-2").pk}
    lease, _ = place_lease(sim)
    sim.run_with_sweeps(40 * 60)
    lease = reload_lease(lease)
    assert (lease.state, lease.end_reason) == ("released", "provision_timeout")
    assert any("slices rejected it" in step.cause for step in transitions_of(lease))
    assert holding_clusters(lease) == []


def test_an_abandoned_placement_is_freed_once(sim: Simulation, unreliable: UnreliableClusters) -> None:
    lease, first = place_lease(sim)
    unreliable.full = unreliable.keeps = {find_cluster(first).pk}
    sim.run(1)
    unreliable.keeps = set()
    for _ in range(3):
        abandoned_placements.free_abandoned_placements(lease.pk, lease.tenant_id, now=sim.now + timedelta(seconds=1))
    assert holding_clusters(lease) == [other_cluster(first)]


def test_freeing_a_placement_twice_enqueues_no_message(sim: Simulation, unreliable: UnreliableClusters) -> None:
    lease, _ = place_lease(sim)
    sim.messages.clear()
    abandoned_placements._free_placements(lease, lease.generation, now=sim.now)
    assert (sim.messages, len(held_allocations(lease))) == ([], 1)


def test_a_pending_observation_without_text_is_polled_again(
    sim: Simulation, unreliable: UnreliableClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, _ = place_lease(sim)
    monkeypatch.setattr(unreliable, "ensure", lambda order, *, now: Observation(ObservedState.PENDING))
    sim.run(30)
    assert (reload_lease(lease).state, reload_lease(lease).progress) == (LeaseState.PROVISIONING, {})


def test_an_expired_deadline_leaves_abandoned_placements_to_a_later_call(
    sim: Simulation, unreliable: UnreliableClusters
) -> None:
    lease = sim.create_lease(create_tenant(), offering("whole-gpu"), LeaseState.PROVISIONING)
    with tenant_scope(lease.tenant_id):
        abandoned_placements.abandon_placements(reload_lease(lease), now=sim.now)
    going = abandoned_placements.free_abandoned_placements(
        lease.pk, lease.tenant_id, now=sim.now, beside="clu_x", requests_until=sim.now - timedelta(seconds=1)
    )
    assert [each.answered for each in going.values()] == [True]  # it may still run: no cluster was asked
    assert unreliable.removal_requests == []


def test_a_node_eviction_spares_leases_continued_elsewhere(sim: Simulation, unreliable: UnreliableClusters) -> None:
    lease, first = abandon_placement(sim, unreliable)
    left = Node.objects.get(cluster__name=first)
    assert eviction.evict_node_leases(left, why="power works", actor=OPERATOR, now=sim.now) == []
    assert reload_lease(lease).state == LeaseState.ACTIVE
    there = Node.objects.get(cluster__name=other_cluster(first))
    assert eviction.evict_node_leases(there, why="power works", actor=OPERATOR, now=sim.now) == [reload_lease(lease)]


def test_a_lease_connection_points_to_the_current_cluster(sim: Simulation, unreliable: UnreliableClusters) -> None:
    lease, first = abandon_placement(sim, unreliable, workload="jupyter")
    for name in (first, other_cluster(first)):
        Cluster.objects.filter(name=name).update(domain=f"{name}.example", ingress="ingress/public")
    with tenant_scope(lease.tenant_id):
        (way,) = lease_connections_of(lease)
    assert way.line.endswith(f".{other_cluster(first)}.example/")
