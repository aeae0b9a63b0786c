"""The queue of all tenants, and items that need attention."""

from datetime import timedelta

import pytest
from django.db.backends.postgresql.psycopg_any import NumericRange as Range

from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, GpuHealth, Lease, Node, NodeState, Offering, OfferingState
from broker.services.inventory import hardware
from broker.services.queue.starvation_guard import MAX_WAIT
from broker.services.reports import attention_items, fleet_gpus, inventory_history, queue_report
from broker.services.reports.attention_items import AttentionItem, AttentionKind
from broker.services.reports.gpu_usage import UnitUse
from tenants.services.rls import staff_scope, tenant_scope
from tests import simulation
from tests.simulation import OPERATOR, Simulation, TenantContext

pytestmark = pytest.mark.django_db


def find_attention(sim: Simulation) -> list[AttentionItem]:
    with staff_scope():
        return attention_items.find_attention_items(
            fleet_gpus.load_gpus(), queue_report.load_queue_figures(now=sim.now), now=sim.now
        )


def fill_fleet(sim: Simulation, owner: TenantContext) -> list[Lease]:
    return [sim.create_lease(owner, simulation.offering("whole-gpu")) for _ in range(4)]


def test_the_queue_shows_all_tenants_oldest_first(sim: Simulation, kestrel: TenantContext) -> None:
    tern = simulation.create_tenant("Tern")
    fill_fleet(sim, kestrel)
    waiting = []
    for owner in (tern, kestrel, tern):
        waiting.append(sim.request_lease(owner, simulation.offering("whole-gpu")))
        sim.run(60)
    with staff_scope():
        seen, figures = list(queue_report.queued_leases()), queue_report.load_queue_figures(now=sim.now)
    assert [lease.pk for lease in seen] == [lease.pk for lease in waiting]
    assert [lease.tenant.name for lease in seen] == ["Tern", "Kestrel", "Tern"]
    assert figures.waiting == 3
    assert figures.oldest == sim.now - waiting[0].created_at == figures.p95
    assert not figures.overdue


def test_a_restarted_lease_queues_from_its_restart(sim: Simulation, kestrel: TenantContext) -> None:
    again = sim.create_lease(kestrel, simulation.offering("whole-gpu"), volume=sim.create_volume(kestrel).pk)
    sim.run(1800)
    sim.stop_lease(again, kestrel)
    sim.run(60)
    fill_fleet(sim, kestrel)
    first = sim.request_lease(kestrel, simulation.offering("whole-gpu"))
    sim.run(30)
    sim.start_lease(again, kestrel)
    sim.run(30)
    with staff_scope():
        seen, figures = list(queue_report.queued_leases()), queue_report.load_queue_figures(now=sim.now)
    assert [lease.pk for lease in seen] == [first.pk, again.pk]
    assert figures.oldest == sim.now - first.created_at


def test_a_lease_that_starts_later_does_not_wait_yet(sim: Simulation, kestrel: TenantContext) -> None:
    sim.request_lease(kestrel, simulation.offering("1g.10gb"), starts_at=sim.now + timedelta(hours=1))
    with staff_scope():
        seen = queue_report.load_queue_figures(now=sim.now)
    assert (seen.waiting, seen.oldest, seen.p95) == (0, None, None)


def test_an_empty_queue_has_no_age(sim: Simulation, kestrel: TenantContext) -> None:
    with staff_scope():
        seen = queue_report.load_queue_figures(now=sim.now)
    assert (seen.waiting, seen.oldest, seen.p95, seen.overdue) == (0, None, None, False)


def test_a_healthy_fleet_needs_no_attention(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    assert find_attention(sim) == []


def test_a_lost_node_is_listed_with_its_gpus_and_leases(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    node = Node.objects.get()
    simulation.set_node_state(node, NodeState.LOST, sim)
    assert find_attention(sim) == [
        AttentionItem(
            AttentionKind.NODE,
            "north-1 / n01 is lost",
            "4 GPUs, one lease still on them",
            node.pk,
            sim.now,
            True,
        )
    ]


def test_a_draining_node_is_listed_once_it_is_empty(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    simulation.set_node_state(Node.objects.get(), NodeState.DRAINING, sim)
    assert find_attention(sim) == []
    sim.release_lease(lease)
    sim.run(30)
    (need,) = find_attention(sim)
    assert (need.what, need.urgent) == ("north-1 / n01 is drained", False)


@pytest.mark.parametrize(("leases", "words"), [(0, "XID 79"), (2, "XID 79; 2 leases still on it")])
def test_an_unhealthy_gpu_is_listed_with_its_reason_and_leases(
    sim: Simulation, kestrel: TenantContext, leases: int, words: str
) -> None:
    held = [sim.create_lease(kestrel, simulation.offering("1g.10gb")) for _ in range(leases)]
    pk = simulation.held_allocations(held[0])[0].gpu_id if held else Gpu.objects.first().pk
    gpu = Gpu.objects.get(pk=pk)
    hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=sim.now)
    (need,) = find_attention(sim)
    assert (need.kind, need.subject, need.why, need.urgent) == (AttentionKind.GPU, gpu.pk, words, True)


def test_a_gpu_with_impossible_allocations_is_reported_with_a_reason(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    with tenant_scope(kestrel.tenant.pk):
        lease.allocations.update(profile="3g.40gb", placement=Range(1, 5))
    (place,) = simulation.held_allocations(lease)
    (need,) = find_attention(sim)
    with staff_scope():
        (gpu,) = (each for each in fleet_gpus.load_gpus() if each.slices)
    assert [(run.start, run.size) for run in gpu.unit_runs] == [(0, 1), (1, 4), (5, 3)]
    assert (need.kind, need.subject, need.urgent) == (AttentionKind.GPU, place.gpu_id, True)
    assert need.why == (
        "3g.40gb cannot start at unit 1; it may start at 0, 4; no new leases are placed on it; one lease still on it"
    )


def test_an_allocation_of_the_wrong_size_is_reported(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"))
    with tenant_scope(kestrel.tenant.pk):
        lease.allocations.update(placement=Range(0, 2))
    (need,) = find_attention(sim)
    assert need.why.startswith("1g.10gb needs 1 units, but 2 are allocated; no new leases")


def test_a_gpu_with_a_layout_invalid_for_its_model_is_reported_as_inconsistent(
    sim: Simulation, kestrel: TenantContext
) -> None:
    layout = [{"profile": "3g.40gb", "start": 1, "size": 4}]
    Gpu.objects.filter(index=2).update(layout_policy="fixed", fixed_layout=layout)
    (need,) = find_attention(sim)
    assert (need.what, need.why.partition(";")[0]) == (
        "Allocations of north-1 / n01 / GPU 2 are inconsistent",
        "3g.40gb cannot start at unit 1",
    )
    with staff_scope():
        (gpu,) = (each for each in fleet_gpus.load_gpus() if each.index == 2)
    assert [(run.start, run.size, run.use) for run in gpu.unit_runs] == [(0, 8, UnitUse.UNHEALTHY)]


def test_an_unhealthy_gpu_without_a_reason_is_listed_with_a_default_text(
    sim: Simulation, kestrel: TenantContext
) -> None:
    Gpu.objects.filter(index=0).update(health=GpuHealth.UNHEALTHY)
    assert find_attention(sim)[0].why == "no reason given"


def test_a_lease_provisioning_for_minutes_is_listed_as_stuck(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"), LeaseState.PROVISIONING)
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(
            state_since=sim.now - timedelta(minutes=3), progress={"text": "pulling image"}
        )
    (need,) = find_attention(sim)
    assert need.what == f"{lease.name} of Kestrel is stuck provisioning"
    assert (need.subject, need.why, need.urgent) == (lease.pk, "pulling image", False)


def test_a_failed_lease_is_listed_at_once(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("1g.10gb"), LeaseState.RELEASING)
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(state=LeaseState.FAILED, unfinished_claims=4, progress={})
    (need,) = find_attention(sim)
    assert (need.what, need.why) == (f"{lease.name} of Kestrel failed", "4 attempts so far")
    assert need.urgent


def test_a_lease_queued_beyond_the_maximum_wait_needs_attention(sim: Simulation, kestrel: TenantContext) -> None:
    fill_fleet(sim, kestrel)
    lease = sim.request_lease(kestrel, simulation.offering("whole-gpu"))
    with tenant_scope(kestrel.tenant.pk):
        Lease.objects.filter(pk=lease.pk).update(created_at=sim.now - MAX_WAIT - timedelta(seconds=1))
    (need,) = find_attention(sim)
    assert (need.kind, need.since) == (AttentionKind.QUEUE, sim.now - MAX_WAIT - timedelta(seconds=1))


def test_pools_without_a_published_offering_are_listed(sim: Simulation, kestrel: TenantContext) -> None:
    Offering.objects.update(state=OfferingState.RETIRED)
    (need,) = find_attention(sim)
    assert (need.what, need.why) == ("H100-80GB has no published offering in eu-north", "4 GPUs earn no revenue")


def test_the_history_of_a_gpu_is_listed_newest_first(sim: Simulation, kestrel: TenantContext) -> None:
    first = sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    gpu = Gpu.objects.get(pk=simulation.held_allocations(first)[0].gpu_id)
    sim.release_lease(first)
    sim.run(60)
    hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=sim.now)
    sim.run(60)
    simulation.set_node_state(gpu.node, NodeState.CORDONED, sim)
    with staff_scope():
        assert [hold.lease_id for hold in inventory_history.placements_of(gpu)] == [first.pk]
        of_gpu = [change.after for change in inventory_history.changes_of(gpu.node, gpu)]
        of_other = [change.after for change in inventory_history.changes_of(gpu.node, Gpu.objects.get(index=3))]
        of_node = [change.after for change in inventory_history.changes_of(gpu.node)]
        steps = [step.after for step in inventory_history.transitions_of(first)]
    assert of_gpu == of_node == ["cordoned", "unhealthy"]
    assert of_other == ["cordoned"]
    assert steps[0] == "requested"
    assert steps[-1] == "released"
