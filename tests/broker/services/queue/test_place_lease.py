"""Placement of queued leases."""

from contextlib import nullcontext
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, connection

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Gpu, GpuHealth, LayoutPolicy, Lease, Node, NodeState
from broker.services.inventory.hardware import SimulatedRack
from broker.services.placement import available_capacity
from broker.services.placement.shared_index import SharedIndex, current_index
from broker.services.placement.slot_search import PlacementRequest
from broker.services.queue import lease_placement, queue_scheduling
from broker.services.queue.starvation_guard import MAX_WAIT
from broker.services.reconciler import lease_reconciler
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    TenantContext,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    soft_offering,
    state_path,
    transitions_of,
)

POOL = (MODEL, REGION)


def test_a_placed_lease_records_its_node_and_gpu(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), LeaseState.PROVISIONING)
    assert transitions_of(lease)[-1].cause == "placed on north-1 / n01 / GPU 0"
    assert reload_lease(lease).generation == 2
    assert len(held_allocations(lease)) == 1


def test_a_lease_without_capacity_is_queued_with_a_reason(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("whole-gpu"))
    waiting = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.run()
    assert reload_lease(waiting).pending_reason == (
        "Waits for one free H100 SXM 80GB whole GPU. All in eu-north are in use; it starts at the next release."
    )


def test_a_queued_lease_reports_that_no_gpu_of_its_model_is_in_service(sim: Simulation) -> None:
    create_gpus(1)
    Gpu.objects.update(health=GpuHealth.UNHEALTHY)
    waiting = sim.request_lease(create_tenant(), offering("whole-gpu"))
    sim.run()
    assert "no GPU of this model is in service in eu-north" in reload_lease(waiting).pending_reason


@pytest.mark.parametrize(
    ("taken", "words"), [(4, "None is free now."), (3, "One is free now."), (2, "2 are free now.")]
)
def test_a_queued_gang_reports_how_many_gpus_are_free(sim: Simulation, taken: int, words: str) -> None:
    create_gpus(4)
    kestrel = create_tenant()
    for _ in range(taken):
        sim.create_lease(kestrel, offering("whole-gpu"))
    waiting = sim.request_lease(kestrel, offering("whole-gpu"), quantity=3, same_node=True)
    sim.run()
    assert (
        reload_lease(waiting).pending_reason
        == f"Waits for 3 × H100 SXM 80GB whole GPU, free together on one node. {words}"
    )


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_a_gang_is_placed_completely_or_not_at_all(sim: Simulation, nodes: int) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=nodes, gpus_per_node=4 // nodes))
    kestrel = create_tenant()
    small = sim.create_lease(kestrel, offering("whole-gpu"))
    gang = sim.request_lease(kestrel, offering("whole-gpu"), quantity=4)
    sim.run()
    assert held_allocations(gang) == []
    sim.release_lease(small)
    sim.run(10)
    assert len(held_allocations(gang)) == 4
    assert Node.objects.filter(gpus__in=[place.gpu_id for place in held_allocations(gang)]).distinct().count() == nodes


def test_a_release_places_the_next_queued_lease_at_once(sim: Simulation) -> None:
    create_gpus(1)
    first, second = create_tenant("First"), create_tenant("Second")
    running = sim.create_lease(first, offering("whole-gpu"))
    waiting = sim.request_lease(second, offering("whole-gpu"))
    sim.run()
    sim.messages.clear()
    sim.release_lease(running)
    while reload_lease(running).state != LeaseState.RELEASED:
        sim.run(0.1)
    assert reload_lease(waiting).state == LeaseState.PROVISIONING
    assert reload_lease(waiting).pending_reason == ""


def test_the_oldest_fitting_lease_is_placed_first(sim: Simulation) -> None:
    create_gpus(1)
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
    running = sim.create_lease(kestrel, offering("whole-gpu"))
    older = sim.request_lease(swift, offering("whole-gpu"))
    sim.run(1)
    younger = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.release_lease(running)
    sim.run(2)
    assert (reload_lease(older).state, reload_lease(younger).state) == ("provisioning", "queued")


def test_a_small_lease_may_pass_a_large_waiting_one(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("3g.40gb"))
    large = sim.request_lease(kestrel, offering("whole-gpu"))
    small = sim.request_lease(kestrel, offering("1g.10gb"))
    sim.run()
    assert (reload_lease(large).state, reload_lease(small).state) == ("queued", "provisioning")


def test_after_an_hour_no_younger_lease_passes_a_waiting_one(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("3g.40gb"), max_duration_s=4 * 3600)
    large = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.run(MAX_WAIT.total_seconds() + 1)
    small = sim.request_lease(kestrel, offering("1g.10gb"))
    sim.run()
    assert (reload_lease(large).state, reload_lease(small).state) == ("queued", "queued")


def test_equal_requests_get_the_same_reason_without_a_search(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("whole-gpu"))
    waiting = [sim.request_lease(kestrel, offering("whole-gpu")) for _ in range(5)]
    tried = []
    place = lease_placement.place_lease
    monkeypatch.setattr(
        lease_placement, "place_lease", lambda lease, **how: tried.append(lease.pk) or place(lease, **how)
    )
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 0
    assert tried == [waiting[0].pk]
    assert len({reload_lease(lease).pending_reason for lease in waiting}) == 1
    assert reload_lease(waiting[4]).pending_reason


def test_an_unchanged_pending_reason_is_not_written_again(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("whole-gpu"))
    waiting = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.run()
    version = reload_lease(waiting).version
    queue_scheduling.run_queue(POOL, now=sim.now)
    assert reload_lease(waiting).version == version


def test_a_lease_placed_meanwhile_is_not_placed_again(sim: Simulation) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    lease = sim.request_lease(kestrel, offering("whole-gpu"))
    with tenant_scope(kestrel.tenant.pk):
        stale = Lease.objects.select_related("offering").get(pk=lease.pk)
        assert lease_placement.place_lease(reload_lease(lease), now=sim.now)
        assert not lease_placement.place_lease(stale, now=sim.now)
    assert len(held_allocations(lease)) == 1


@pytest.mark.parametrize("isolation", ["soft", "none"])
def test_tenants_never_share_a_gpu_without_hardware_isolation(sim: Simulation, isolation: str) -> None:
    create_gpus(1)
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
    quarter = soft_offering(isolation=isolation)
    first, second = sim.create_lease(kestrel, quarter), sim.create_lease(kestrel, quarter)
    assert held_allocations(first)[0].gpu_id == held_allocations(second)[0].gpu_id
    foreign_lease = sim.request_lease(swift, quarter)
    sim.run()
    assert reload_lease(foreign_lease).state == LeaseState.QUEUED
    with tenant_scope(swift.tenant.pk):
        assert available_capacity.count_available([quarter]) == {quarter.pk: 0}
    with tenant_scope(kestrel.tenant.pk):
        assert available_capacity.count_available([quarter]) == {quarter.pk: 2}


@pytest.mark.parametrize("isolation", ["soft", "none"])
def test_tenants_share_a_gpu_without_hardware_isolation_if_the_cluster_allows_it(
    sim: Simulation, isolation: str
) -> None:
    create_gpus(1)
    Cluster.objects.update(allow_shared_gpus=True)
    quarter = soft_offering(isolation=isolation)
    first, second = (
        sim.create_lease(create_tenant("Kestrel"), quarter),
        sim.create_lease(create_tenant("Swift"), quarter),
    )
    assert held_allocations(first)[0].gpu_id == held_allocations(second)[0].gpu_id
    assert held_allocations(second)[0].may_share


def share_gpus_in_quarters() -> None:
    """Make nodes share their GPUs in quarters and assign replicas themselves."""
    quarters = [{"profile": "quarter", "start": start, "size": 2, "isolation": "soft"} for start in (0, 2, 4, 6)]
    Gpu.objects.update(layout_policy="fixed", fixed_layout=quarters)


def test_tenants_never_share_a_node_that_picks_the_gpu_itself(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2))
    share_gpus_in_quarters()
    quarter, kestrel, swift, merlin = (
        soft_offering(),
        create_tenant("Kestrel"),
        create_tenant("Swift"),
        create_tenant("Merlin"),
    )
    first = sim.create_lease(kestrel, quarter)
    Gpu.objects.filter(pk=held_allocations(first)[0].gpu_id).update(health="unhealthy")  # its lease still holds it
    second = sim.create_lease(swift, quarter)
    nodes = {Gpu.objects.get(pk=held_allocations(lease)[0].gpu_id).node_id for lease in (first, second)}
    assert len(nodes) == 2
    third = sim.request_lease(merlin, quarter)
    sim.run()
    assert reload_lease(third).state == LeaseState.QUEUED
    with tenant_scope(merlin.tenant.pk):
        assert available_capacity.count_available([quarter]) == {quarter.pk: 0}
    with tenant_scope(swift.tenant.pk):
        assert available_capacity.count_available([quarter]) == {quarter.pk: 7}


def test_a_reservation_fails_if_another_tenant_was_placed_on_the_node_first(sim: Simulation) -> None:
    create_gpus(2)
    share_gpus_in_quarters()
    quarter, kestrel, swift = soft_offering(), create_tenant("Kestrel"), create_tenant("Swift")
    late = sim.request_lease(swift, quarter)
    with tenant_scope(swift.tenant.pk):
        lease = Lease.objects.select_related("offering").get(pk=late.pk)
        with current_index() as stock:
            on_the_other = PlacementRequest(quarter, not_at=frozenset(sorted(stock.gpus)[:1]))
            seating = lease_placement.find_slots(on_the_other, stock)
        assert seating
    first = sim.request_lease(kestrel, quarter)
    with tenant_scope(kestrel.tenant.pk):
        assert lease_placement.place_lease(Lease.objects.select_related("offering").get(pk=first.pk), now=sim.now)
    with tenant_scope(swift.tenant.pk):
        assert not lease_placement._reserve_slots(lease, seating, sim.now)
    assert held_allocations(late) == []


def test_a_gpu_with_a_fixed_layout_sells_only_the_slices_of_that_layout(sim: Simulation) -> None:
    create_gpus(1)
    layout = [{"profile": "3g.40gb", "start": 4, "size": 4}, {"profile": "2g.20gb", "start": 0, "size": 2}]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=layout)
    kestrel = create_tenant()
    lease = sim.create_lease(kestrel, offering("3g.40gb"))
    place = held_allocations(lease)[0].placement
    assert (place.lower, place.upper) == (4, 8)
    refused = sim.request_lease(kestrel, offering("1g.10gb"))
    sim.run()
    assert reload_lease(refused).state == LeaseState.QUEUED
    with tenant_scope(kestrel.tenant.pk):
        free = available_capacity.count_available([offering("2g.20gb"), offering("3g.40gb"), offering("whole-gpu")])
    assert list(free.values()) == [1, 0, 0]


def test_no_lease_is_placed_on_a_cordoned_node(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1))
    kestrel = create_tenant()
    first = sim.create_lease(kestrel, offering("whole-gpu"))
    node = node_of(first)
    sim.release_lease(first)
    sim.run(10)
    set_node_state(node, NodeState.CORDONED, sim)
    second = sim.create_lease(kestrel, offering("whole-gpu"))
    third = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.run()
    assert node_of(second) != node
    assert reload_lease(third).state == LeaseState.QUEUED
    set_node_state(node, NodeState.READY, sim)
    sim.run()
    assert reload_lease(third).state == LeaseState.PROVISIONING


def test_a_gpu_that_fails_between_choice_and_reservation_is_not_used(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    seat, chosen = lease_placement.find_slots, []

    def and_it_fails(*args: object, **named: object) -> object:
        seating = seat(*args, **named)  # type: ignore[arg-type]
        if not chosen:
            chosen.append(next(iter(seating.gpus)))  # type: ignore[union-attr]
            Gpu.objects.filter(pk=chosen[0]).update(health=GpuHealth.UNHEALTHY)
        return seating

    monkeypatch.setattr(lease_placement, "find_slots", and_it_fails)
    lease = sim.create_lease(kestrel, offering("whole-gpu"), LeaseState.PROVISIONING)
    assert held_allocations(lease)[0].gpu_id != chosen[0]


def test_a_lease_that_loses_every_race_is_retried_soon(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering("whole-gpu"))
    with monkeypatch.context() as always_late:
        always_late.setattr(lease_placement, "_reserve_slots", lambda *args: False)
        sim.run()
    assert reload_lease(lease).state == LeaseState.QUEUED
    assert [hint[2] for hint in sim.messages] == ["broker.run_queue"]
    sim.run(1)
    assert reload_lease(lease).state == LeaseState.PROVISIONING


def test_an_integrity_error_that_is_no_race_is_raised(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering("whole-gpu"))

    def hold(held: Lease, *args: object) -> bool:
        Gpu.objects.create(pk="gpu_x", node_id="nod_none", index=0, gpu_model_id=MODEL, health_since=sim.now)
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        return True

    monkeypatch.setattr(lease_placement, "_reserve_slots", hold)
    with tenant_scope(lease.tenant_id), pytest.raises(IntegrityError):
        lease_placement.place_lease(reload_lease(lease), now=sim.now)


def freeze_gpu_index(owner: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next read of the GPU index return its current state."""
    keeper = SharedIndex()
    with tenant_scope(owner.tenant.pk), keeper.up_to_date() as stock:
        old = [nullcontext(stock)]
    monkeypatch.setattr(lease_placement, "current_index", lambda: old.pop() if old else current_index())


def test_a_lease_that_loses_a_slot_takes_the_next_one(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    winner, loser = sim.request_lease(kestrel, offering("whole-gpu")), sim.request_lease(kestrel, offering("whole-gpu"))
    with tenant_scope(kestrel.tenant.pk):
        freeze_gpu_index(kestrel, monkeypatch)
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(lease_placement, "current_index", current_index)
            assert lease_placement.place_lease(reload_lease(winner), now=sim.now)
        assert lease_placement.place_lease(reload_lease(loser), now=sim.now)
    assert held_allocations(loser)[0].gpu_id != held_allocations(winner)[0].gpu_id


def test_a_lease_placed_by_another_worker_is_not_placed_twice(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease = sim.request_lease(kestrel, offering("whole-gpu"))
    copy = reload_lease(lease)
    with tenant_scope(kestrel.tenant.pk):
        freeze_gpu_index(kestrel, monkeypatch)
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(lease_placement, "current_index", current_index)
            assert lease_placement.place_lease(reload_lease(lease), now=sim.now)
        assert not lease_placement.place_lease(copy, now=sim.now)
    assert len(held_allocations(lease)) == 1


def test_a_lease_released_during_scheduling_is_not_placed(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering("whole-gpu"))
    queue = queue_scheduling.load_queue(POOL)
    sim.release_lease(lease)
    monkeypatch.setattr(queue_scheduling, "load_queue", lambda pool, **_: queue)
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 1
    assert held_allocations(lease) == []


def test_a_lease_that_waits_beyond_its_end_date_expires_in_the_queue(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("whole-gpu"))
    waiting = sim.request_lease(kestrel, offering("whole-gpu"), end_date=sim.now + timedelta(minutes=10))
    sim.run(599)
    sim.sweep()
    assert reload_lease(waiting).state == LeaseState.QUEUED
    sim.run(1)
    sim.sweep()
    assert (reload_lease(waiting).state, reload_lease(waiting).end_reason) == ("released", "expired")
    assert state_path(waiting) == "requested queued releasing released"


def count_messages_for(sim: Simulation, *leases: Lease) -> int:
    """Count the enqueued messages that reconcile some leases."""
    return sum(
        task == "broker.reconcile_lease" and subject in {each.pk for each in leases}
        for _, _, task, subject, _ in sim.messages
    )


def test_leases_placed_in_a_batch_are_reconciled_by_their_own_messages(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    first, second, third = (sim.request_lease(kestrel, offering()) for _ in range(3))
    sim.messages.clear()
    lease_reconciler.reconcile_lease(
        third.pk, third.tenant_id, now=sim.now
    )  # was faster than theirs, and placed them all
    assert [reload_lease(lease).state for lease in (first, second)] == ["provisioning", "provisioning"]
    assert count_messages_for(sim, first, second) == 0
    assert count_messages_for(sim, third) == 1  # it was worked on: this is when to look again
    for lease in (first, second):
        lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    sim.run(30)
    assert {reload_lease(lease).state for lease in (first, second, third)} == {"active"}


def test_a_waiting_lease_is_notified_when_the_message_of_another_lease_places_it(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    waiting = sim.request_lease(kestrel, offering())
    with tenant_scope(waiting.tenant_id):
        Lease.objects.filter(pk=waiting.pk).update(pending_reason="Waits for one free slice.")
    late = sim.request_lease(kestrel, offering())
    sim.messages.clear()
    lease_reconciler.reconcile_lease(late.pk, late.tenant_id, now=sim.now)
    assert count_messages_for(sim, waiting) == 1


def test_scheduling_up_to_a_lease_places_no_younger_ones(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    oldest, own, younger = (sim.request_lease(kestrel, offering()) for _ in range(3))
    assert queue_scheduling.run_queue(POOL, now=sim.now, upto=own.pk) == 2
    assert [reload_lease(lease).state for lease in (oldest, own, younger)] == [
        "provisioning",
        "provisioning",
        "queued",
    ]
    assert queue_scheduling.run_queue(POOL, now=sim.now, upto=own.pk) == 0
    assert reload_lease(younger).state == "queued"


def test_a_placed_lease_whose_message_was_lost_is_found_by_the_sweep(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    first, second = sim.request_lease(kestrel, offering()), sim.request_lease(kestrel, offering())
    sim.messages.clear()
    lease_reconciler.reconcile_lease(second.pk, second.tenant_id, now=sim.now)
    sim.run_with_sweeps(45)
    assert reload_lease(first).state == "active"


def test_a_lease_placed_by_another_worker_is_reconciled_further(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())
    sim.messages.clear()
    place = lease_placement.place_lease

    def faster(one: Lease, *, now: datetime) -> bool:
        assert place(reload_lease(one), now=now)
        one.refresh_from_db(fields=lease_placement.RELOADED_FIELDS)
        return False

    monkeypatch.setattr(lease_placement, "place_lease", faster)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    assert count_messages_for(sim, lease) == 1
    sim.run(30)
    assert reload_lease(lease).state == "active"
