"""Leases that wait for more than an hour, and what they block."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError

from broker.models import Allocation, Gpu, GpuHealth, Lease
from broker.services.inventory import hardware
from broker.services.inventory.hardware import SimulatedRack
from broker.services.queue import (
    batch_placement,
    gpu_reservations,
    lease_placement,
    open_capacity,
    queue_scheduling,
)
from broker.services.queue.starvation_guard import MAX_WAIT
from tenants.services.rls import system_scope, tenant_scope
from tests.simulation import (
    MODEL,
    OPERATOR,
    REGION,
    Simulation,
    TenantContext,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
)

POOL = (MODEL, REGION)


def test_a_gang_beyond_the_gpus_in_service_blocks_no_lease(sim: Simulation) -> None:
    create_gpus(4)
    kestrel = create_tenant("Kestrel")
    running = sim.create_lease(kestrel, offering("whole-gpu"))
    gang = sim.request_lease(kestrel, offering("whole-gpu"), quantity=4)
    sim.run()
    elsewhere = Gpu.objects.exclude(pk=held_allocations(running)[0].gpu_id).earliest("index")
    hardware.set_gpu_health(elsewhere, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=sim.now)
    sim.clock.at += MAX_WAIT + timedelta(seconds=1)
    small = sim.request_lease(create_tenant("Swift"), offering("1g.10gb"))
    sim.run()
    assert (reload_lease(gang).state, reload_lease(small).state) == ("queued", "provisioning")


def test_a_blocked_lease_names_the_older_request_that_it_waits_behind(sim: Simulation) -> None:
    create_gpus(4)
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
    running = sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=40 * 3600)
    gang = sim.request_lease(kestrel, offering("whole-gpu"), quantity=4)
    sim.run()
    sim.clock.at += MAX_WAIT + timedelta(seconds=1)
    small, other = sim.request_lease(swift, offering("1g.10gb")), sim.request_lease(kestrel, offering("1g.10gb"))
    sim.run()
    for lease in (small, other):
        assert reload_lease(lease).state == "queued"
        assert reload_lease(lease).pending_reason == (
            f"Waits behind an older request for 4 × {gang.offering.label}, which has waited for more than an hour"
            " and goes first."
        )
    version = reload_lease(small).version
    queue_scheduling.run_queue(POOL, now=sim.now)
    assert reload_lease(small).version == version
    sim.release_lease(running)
    sim.run_with_sweeps(60)
    assert (reload_lease(gang).state, reload_lease(small).state) == ("active", "queued")
    assert "free H100 SXM 80GB 1g.10gb" in reload_lease(small).pending_reason


def nodes_of(lease: Lease) -> set[str]:
    return {place.gpu.node.name for place in held_allocations(lease)}


@pytest.fixture
def two_nodes(sim: Simulation) -> tuple[TenantContext, Lease, Lease]:
    """Take one of two GPUs on two nodes, for two and ten hours."""
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2))
    kestrel = create_tenant("Kestrel")
    short = sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=2 * 3600)
    beside = sim.create_lease(kestrel, offering("whole-gpu"))
    long = sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=10 * 3600)
    sim.release_lease(beside)
    sim.run_with_sweeps(60)
    assert nodes_of(short) != nodes_of(long)
    return kestrel, short, long


def starving_gang(sim: Simulation, owner: TenantContext, **wanted: Any) -> Lease:
    lease = sim.request_lease(owner, offering("whole-gpu"), quantity=2, same_node=True, **wanted)
    sim.run()
    sim.clock.at += MAX_WAIT + timedelta(seconds=1)
    assert reload_lease(lease).state == "queued"
    return lease


@pytest.mark.deep
def test_the_first_free_node_is_reserved_for_a_starving_gang(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease]
) -> None:
    kestrel, short, long = two_nodes
    free_first = nodes_of(short)
    gang = starving_gang(sim, kestrel)
    small = [sim.request_lease(create_tenant("Swift"), offering("1g.10gb")) for _ in range(7)]
    last = sim.request_lease(kestrel, offering("1g.10gb"))
    sim.run()
    assert [nodes_of(lease) for lease in small] == 7 * [nodes_of(long)]
    assert reload_lease(last).state == "queued"
    assert reload_lease(last).pending_reason.startswith(f"Waits behind an older request for 2 × {gang.offering.label}")
    sim.run_with_sweeps(3600)
    assert reload_lease(short).state == "released"
    assert nodes_of(gang) == free_first
    assert reload_lease(gang).state == "active"


def shown_free(what: str, owner: TenantContext, sim: Simulation) -> tuple[int, bool]:
    """Return the open capacity, and whether a lease could be placed now."""
    with tenant_scope(owner.tenant.pk):
        free = open_capacity.count_open_capacity([offering(what)], now=sim.now)
        return free[offering(what).pk], open_capacity.preview_open_placement(offering(what), now=sim.now) is not None


def test_reserved_capacity_is_not_shown_as_free(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    kestrel, swift = two_nodes[0], create_tenant("Swift")
    assert shown_free("1g.10gb", swift, sim) == (14, True)
    starving_gang(sim, kestrel)
    with monkeypatch.context() as crowded:
        crowded.setattr(gpu_reservations, "MAX_SHAPES", 0)  # then all who are younger wait
        assert shown_free("1g.10gb", swift, sim) == (0, False)
    free, now = shown_free("1g.10gb", swift, sim)
    assert (free, now) == (7, True)
    requests = [sim.request_lease(swift, offering("1g.10gb")) for _ in range(free + 1)]
    assert shown_free("1g.10gb", swift, sim) == (free, True)  # not scheduled yet
    sim.run()
    assert [reload_lease(each).state for each in requests].count("queued") == 1
    assert shown_free("1g.10gb", swift, sim) == (0, False)


def test_two_equal_starving_gangs_reserve_gpus_only_once(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease]
) -> None:
    kestrel, _, long = two_nodes
    sim.request_lease(kestrel, offering("whole-gpu"), quantity=2, same_node=True)
    starving_gang(sim, kestrel)
    small = sim.request_lease(create_tenant("Swift"), offering("1g.10gb"))
    sim.run()
    assert nodes_of(small) == nodes_of(long)


def test_a_starving_gang_without_reserved_gpus_blocks_all_others(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    kestrel, _, _ = two_nodes
    monkeypatch.setattr(gpu_reservations, "MAX_SHAPES", 0)
    gang = starving_gang(sim, kestrel)
    small = sim.request_lease(create_tenant("Swift"), offering("1g.10gb"))
    sim.run()
    assert reload_lease(small).pending_reason.startswith(f"Waits behind an older request for 2 × {gang.offering.label}")


def test_a_lease_that_needs_reserved_gpus_waits_and_blocks_no_other(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease]
) -> None:
    kestrel, _, long = two_nodes
    waiting = sim.request_lease(kestrel, offering("whole-gpu"), quantity=4)
    other = starving_gang(sim, kestrel)
    fits = sim.request_lease(create_tenant("Swift"), offering("1g.10gb"))
    sim.run()
    assert [reload_lease(each).state for each in (waiting, other, fits)] == ["queued"] * 3  # all four are kept
    sim.release_lease(waiting)
    sim.run()
    assert nodes_of(fits) == nodes_of(long)


def test_a_blocked_lease_names_the_request_its_gpus_are_reserved_for(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease]
) -> None:
    kestrel, short, long = two_nodes
    pair = starving_gang(sim, kestrel)
    last = sim.create_lease(kestrel, offering("whole-gpu"), max_duration_s=3 * 3600)
    assert nodes_of(last) == nodes_of(long)
    one = sim.request_lease(kestrel, offering("4g.40gb"))
    sim.run()
    assert reload_lease(one).pending_reason.startswith(f"Waits behind an older request for 2 × {pair.offering.label}")
    sim.clock.at += MAX_WAIT - timedelta(minutes=10)
    assert reload_lease(short).state == "active"


def test_a_stuck_releasing_lease_counts_as_the_last_freed_gpu(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease]
) -> None:
    kestrel, short, _ = two_nodes
    starving_gang(sim, kestrel)
    sim.release_lease(short)
    sim.clock.at += gpu_reservations.ENDING_TIMEOUT + timedelta(seconds=1)
    small = sim.request_lease(create_tenant("Swift"), offering("1g.10gb"))
    queue_scheduling.run_queue(POOL, now=sim.now)
    assert nodes_of(small) == nodes_of(short)


def test_equal_starving_requests_need_one_reservation_search(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease], monkeypatch: pytest.MonkeyPatch
) -> None:
    kestrel, _, _ = two_nodes
    for _ in range(5):
        sim.request_lease(kestrel, offering("whole-gpu"), quantity=2, same_node=True)
    starving_gang(sim, kestrel)
    looked: list[object] = []
    room_for = gpu_reservations.soonest_free_gpus
    monkeypatch.setattr(
        gpu_reservations,
        "soonest_free_gpus",
        lambda *what, **how: looked.append(what) or room_for(*what, **how),
    )
    queue_scheduling.run_queue(POOL, now=sim.now)
    assert len(looked) == 1


def test_a_starving_topology_request_blocks_all_younger_leases(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2, fabric=2))
    kestrel = create_tenant("Kestrel")
    taken = [sim.create_lease(kestrel, offering("whole-gpu")) for _ in range(3)]
    sim.release_lease(taken[1])
    sim.run_with_sweeps(60)
    assert len({node for lease in (taken[0], taken[2]) for node in nodes_of(lease)}) == 2
    linked = starving_gang(sim, kestrel, topology="nvlink")
    small = sim.request_lease(create_tenant("Swift"), offering("1g.10gb"))
    sim.run()
    assert reload_lease(small).pending_reason.startswith(
        f"Waits behind an older request for 2 × {linked.offering.label}"
    )
    version = reload_lease(small).version
    queue_scheduling.run_queue(POOL, now=sim.now)
    assert reload_lease(small).version == version


def test_a_node_too_small_for_a_gang_is_not_reserved_for_it(sim: Simulation) -> None:
    create_fleet(
        SimulatedRack("north-1", REGION, MODEL, nodes=1, gpus_per_node=1),
        SimulatedRack("north-2", REGION, MODEL, nodes=1, gpus_per_node=2),
    )
    kestrel = create_tenant("Kestrel")
    taken = [sim.create_lease(kestrel, offering("whole-gpu")) for _ in range(3)]
    alone = next(lease for lease in taken if held_allocations(lease)[0].gpu.node.cluster.name == "north-1")
    starving_gang(sim, kestrel)
    sim.release_lease(alone)
    sim.run_with_sweeps(60)
    small = sim.request_lease(create_tenant("Swift"), offering("1g.10gb"))
    sim.run()
    assert held_allocations(small)[0].gpu.node.cluster.name == "north-1"


def test_a_releasing_lease_counts_as_the_first_freed_gpu(
    sim: Simulation, two_nodes: tuple[TenantContext, Lease, Lease]
) -> None:
    kestrel, short, long = two_nodes
    starving_gang(sim, kestrel)
    sim.release_lease(long)
    small = sim.request_lease(create_tenant("Swift"), offering("1g.10gb"))
    queue_scheduling.run_queue(POOL, now=sim.now)
    assert nodes_of(small) == nodes_of(short)


@pytest.mark.deep
def test_small_leases_do_not_starve_a_gang(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2))
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
    for number in range(12):  # one of them ends every few minutes
        sim.create_lease(swift, offering("2g.20gb"), max_duration_s=1800 + 150 * number)
    gang = sim.request_lease(kestrel, offering("whole-gpu"), quantity=2, same_node=True)
    while reload_lease(gang).state == "queued":
        sim.run_with_sweeps(600)
        for _ in range(5):
            sim.request_lease(swift, offering("2g.20gb"), max_duration_s=1800)
        assert sim.now - gang.queues_since < 2 * MAX_WAIT
    with system_scope():
        meanwhile = Allocation.objects.filter(held_at__gt=gang.queues_since + MAX_WAIT).exclude(lease=gang)
        assert meanwhile.filter(held_at__lt=held_allocations(gang)[0].held_at).exists()


def test_an_unreadable_lease_blocks_no_other(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(2)
    kestrel = create_tenant("Kestrel")
    broken, whole = sim.request_lease(kestrel, offering("whole-gpu")), sim.request_lease(kestrel, offering("whole-gpu"))
    place = lease_placement.place_lease

    def unwritable(choices: list[batch_placement.BatchChoice], now: object) -> set[str]:
        assert broken.pk in {choice.row.id for choice in choices}
        raise DataError("timestamp too large (after year 10K)")

    def unreadable(lease: Lease, *, now: object, **more: object) -> bool:
        if lease.pk == broken.pk:
            raise DataError("timestamp too large (after year 10K)")
        return place(lease, now=now, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(batch_placement, "_write_placements", unwritable)
    monkeypatch.setattr(lease_placement, "place_lease", unreadable)
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 1
    assert (reload_lease(broken).state, reload_lease(whole).state) == ("queued", "provisioning")
