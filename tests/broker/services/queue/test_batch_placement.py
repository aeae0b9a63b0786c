"""Placement of several leases of one tenant in one transaction."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Gpu, Lease, Transition
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.queue import batch_placement, queue_scheduling
from ports import clock, outbox
from tenants.services.rls import tenant_scope
from tests.database import OwnDatabase
from tests.simulation import (
    MODEL,
    NOW,
    REGION,
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    soft_offering,
    state_path,
    transitions_of,
)

POOL = (MODEL, REGION)


def ids(*leases: Lease) -> list[str]:
    return [lease.pk for lease in leases]


def place_alone(sim: Simulation, lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    """Place a lease without batches."""
    with monkeypatch.context() as one_by_one:
        one_by_one.setattr(queue_scheduling, "_batch_head", lambda *_: [])
        queue_scheduling.run_queue(POOL, now=sim.now)


def test_a_lease_placed_in_a_batch_is_stored_like_one_placed_alone(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    single = sim.request_lease(kestrel, offering("3g.40gb"))
    place_alone(sim, single, monkeypatch)
    first, second = sim.request_lease(kestrel, offering("3g.40gb")), sim.request_lease(kestrel, offering("whole-gpu"))
    monkeypatch.setattr(
        queue_scheduling, "_place_single", lambda *given, **more: pytest.fail("no lease may be placed alone here")
    )
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 2
    own = {
        "lease_id",
        "id",
        "gpu_id",
        "placement",
        "position",
        "recorded_at",
        "cause",
        "prev_at",
        "at",
        "xid",
    }

    def written(lease: Lease) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        with tenant_scope(kestrel.tenant.pk):
            row = Lease.objects.filter(pk=lease.pk).values().get()
            rows += [{k: v for k, v in row.items() if k not in own | {"created_at", "name", "quota_uses"}}]
            rows += [
                {k: v for k, v in step.items() if k not in own}
                for step in Transition.objects.filter(lease_id=lease.pk).order_by("seq").values()
            ]
            rows += [{k: v for k, v in place.items() if k not in own} for place in lease.allocations.values()]
        return rows

    assert written(first) == written(single)
    assert state_path(first) == "requested queued provisioning"
    assert {place.profile for place in held_allocations(second)} == {"whole-gpu"}
    assert all(transitions_of(lease)[-1].cause.startswith("placed on north-1 / n01 / GPU") for lease in (first, second))
    sim.run(30)
    assert {reload_lease(lease).state for lease in (single, first, second)} == {LeaseState.ACTIVE}


def test_a_lease_without_capacity_gets_a_reason_and_smaller_ones_pass_it(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    small, large, late = (sim.request_lease(kestrel, offering(what)) for what in ("1g.10gb", "whole-gpu", "1g.10gb"))
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 2
    assert [reload_lease(lease).state for lease in (small, large, late)] == [
        "provisioning",
        "queued",
        "provisioning",
    ]
    assert "Waits for one free" in reload_lease(large).pending_reason


def test_gangs_and_shares_are_not_placed_in_a_batch(sim: Simulation) -> None:
    create_gpus(2)
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
    plain, gang = sim.request_lease(kestrel, offering()), sim.request_lease(kestrel, offering(), quantity=2)
    share, foreign_lease = sim.request_lease(kestrel, soft_offering()), sim.request_lease(swift, offering())
    queue = queue_scheduling.load_queue(POOL)
    assert [entry.lease_id for entry in queue] == ids(plain, gang, share, foreign_lease)
    assert [len(queue_scheduling._batch_head(queue[n:])) for n in range(4)] == [1, 0, 0, 1]
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 4


def test_a_failed_batch_write_falls_back_to_single_placement(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    leases = [sim.request_lease(kestrel, offering()) for _ in range(2)]
    monkeypatch.setattr(batch_placement, "allocation_id", lambda: "alc_twice")
    outcome = batch_placement.place_batch(POOL, kestrel.tenant.pk, ids(*leases), notify_leases=[], now=sim.now)
    assert outcome == (set(), True)
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 2


def occupy_chosen_slot(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Occupy the chosen slot before the write, the given number of times."""
    take, left = batch_placement._write_placements, [times]

    def late(choices: list[batch_placement.BatchChoice], now: datetime) -> set[str]:
        if not left[0]:
            return take(choices, now)
        left[0] -= 1
        at, lease = choices[0].slot, Lease.objects.get(pk=choices[0].row.id)
        for generation in (8, 9):
            Allocation.objects.create(
                tenant_id=lease.tenant_id,
                lease=lease,
                generation=generation,
                gpu_id=at.gpu,
                placement=NumericRange(at.placement.start, at.placement.end, "[)"),
                profile=choices[0].row.profile,
                isolation=choices[0].row.isolation,
                held_at=now,
            )
        raise AssertionError("PostgreSQL must refuse overlapping allocations")

    monkeypatch.setattr(batch_placement, "_write_placements", late)


def test_a_batch_that_loses_a_slot_retries_and_is_placed_together(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    leases = [sim.request_lease(kestrel, offering()) for _ in range(3)]
    occupy_chosen_slot(monkeypatch, 1)
    monkeypatch.setattr(
        queue_scheduling, "_place_single", lambda *given, **more: pytest.fail("no lease may be placed alone here")
    )
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 3
    assert [len(held_allocations(lease)) for lease in leases] == [1, 1, 1]


def test_after_repeated_losses_one_lease_is_placed_alone_and_the_others_together(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    leases = [sim.request_lease(kestrel, offering()) for _ in range(4)]
    occupy_chosen_slot(monkeypatch, batch_placement.TRIES)
    went: list[str] = []
    one_by_one = queue_scheduling._place_single

    def seen(entry: queue_scheduling.QueuedLease, *given: Any, **more: Any) -> bool:
        went.append(entry.lease_id)
        return one_by_one(entry, *given, **more)

    monkeypatch.setattr(queue_scheduling, "_place_single", seen)
    assert queue_scheduling.run_queue(POOL, now=sim.now) == 4
    assert went == ids(leases[0])


def test_a_released_lease_in_a_batch_is_not_placed(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    first, second = sim.request_lease(kestrel, offering()), sim.request_lease(kestrel, offering())
    sim.release_lease(first)
    outcome = batch_placement.place_batch(POOL, kestrel.tenant.pk, ids(first, second), notify_leases=[], now=sim.now)
    assert outcome == (set(ids(first, second)), False)
    assert held_allocations(first) == []


def queue_leases(owner: TenantContext, count: int) -> list[Lease]:
    with tenant_scope(owner.tenant.pk):
        wanted = LeaseRequest(offering_id=offering("3g.40gb").pk, name="job", max_duration_s=3600)
        return [request_lease(wanted, project=owner.project, actor=owner.actor, now=NOW) for _ in range(count)]


def test_locked_gpus_and_leases_are_skipped(own_database: OwnDatabase) -> None:
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None), ThreadPoolExecutor(1) as other_thread:
        create_gpus(3)
        kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
        leases, others = queue_leases(kestrel, 3), queue_leases(swift, 1)
        with transaction.atomic():
            with tenant_scope(kestrel.tenant.pk):
                list(Lease.objects.filter(pk=leases[0].pk).select_for_update(no_key=True))
            list(Gpu.objects.filter(index=0).select_for_update(no_key=True))
            place = partial(
                batch_placement.place_batch, POOL, kestrel.tenant.pk, ids(*leases), notify_leases=[], now=NOW
            )
            assert other_thread.submit(place).result(60) == (set(ids(*leases)), False)
        assert [len(held_allocations(lease)) for lease in leases] == [0, 1, 1]
        assert not {place.gpu.index for lease in leases for place in held_allocations(lease)} & {0}
        assert queue_scheduling.run_queue(POOL, now=NOW) == 2
        assert len(held_allocations(leases[0])) == len(held_allocations(others[0])) == 1
        other_thread.submit(connections.close_all).result(60)


def test_a_batch_is_not_placed_and_does_not_wait_while_all_gpus_are_locked(
    own_database: OwnDatabase,
) -> None:
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None), ThreadPoolExecutor(1) as other_thread:
        create_gpus(2)
        kestrel = create_tenant()
        leases = queue_leases(kestrel, 2)
        with transaction.atomic():
            list(Gpu.objects.all().select_for_update(no_key=True))
            place = partial(
                batch_placement.place_batch, POOL, kestrel.tenant.pk, ids(*leases), notify_leases=[], now=NOW
            )
            assert other_thread.submit(place).result(60) == (set(), True)
        other_thread.submit(connections.close_all).result(60)


def test_batch_placement_gives_up_when_all_gpus_stay_locked(
    own_database: OwnDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_placement, "TRIES", 1)
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None), ThreadPoolExecutor(1) as other_thread:
        create_gpus(2)
        kestrel = create_tenant()
        leases = queue_leases(kestrel, 2)
        with transaction.atomic():
            list(Gpu.objects.all().select_for_update(no_key=True))
            place = partial(
                batch_placement.place_batch, POOL, kestrel.tenant.pk, ids(*leases), notify_leases=[], now=NOW
            )
            assert other_thread.submit(place).result(60) == (set(), False)
        other_thread.submit(connections.close_all).result(60)
