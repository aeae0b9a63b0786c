"""Quotas and slots under a hundred concurrent requests."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections

from broker.domain.lifecycle.states import EndReason
from broker.models import Allocation, Gpu, Lease
from broker.models.keys import allocation_id
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.lifecycle import termination
from broker.services.leases.lifecycle.extension import extend_lease
from broker.services.queue import lease_placement, queue_scheduling
from broker.services.reconciler import lease_reconciler
from ports import clock, outbox
from tenants.models import QuotaKind
from tenants.services.errors import QuotaExceeded
from tenants.services.rls import system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.simulation import (
    NOW,
    TenantContext,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
)

PARALLEL, TIMES = 100, 20
TAKE = "SELECT id FROM broker_gpu WHERE id = %s FOR NO KEY UPDATE NOWAIT"
WAITING = """
SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
 WHERE NOT l.granted AND a.datname = current_database()
"""


class Crowd:
    """Threads with own connections that start at one moment."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._start = threading.Barrier(size)
        self._pool = ThreadPoolExecutor(size)

    def all_at_once(self, act: Callable[[int], Any]) -> list[Any]:
        def one(number: int) -> Any:
            connection.ensure_connection()
            self._start.wait(120)
            return act(number)

        return list(self._pool.map(one, range(self.size)))

    def close(self) -> None:
        list(self._pool.map(lambda _: (self._start.wait(120), connections.close_all()), range(self.size)))
        self._pool.shutdown()


@pytest.fixture
def crowd(own_database: OwnDatabase) -> Iterator[Crowd]:
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        crowd = Crowd(PARALLEL)
        yield crowd
        crowd.close()


def request_one(owner: TenantContext, offering_id: str, number: int) -> Lease:
    with tenant_scope(owner.tenant.pk):
        return request_lease(
            LeaseRequest(offering_id=offering_id, name=f"job-{number}", max_duration_s=3600),
            project=owner.project,
            actor=owner.actor,
            now=NOW,
        )


def granted(owner: TenantContext, offering_id: str, number: int) -> bool:
    try:
        request_one(owner, offering_id, number)
    except QuotaExceeded:
        return False
    return True


def end_placed() -> None:
    for task, subject, tenant in lease_reconciler.messages_for_all_live():
        if task == "broker.reconcile_lease":
            finish(subject, tenant)


def finish(lease_id: str, tenant_id: str) -> None:
    with tenant_scope(tenant_id):
        lease = Lease.objects.select_related("offering").get(pk=lease_id)
        termination.release_lease(lease, reason=EndReason.BY_TENANT, now=NOW)
        if lease.state != "released":
            termination.finish_release(lease, now=NOW)


@pytest.mark.deep
def test_a_hundred_requests_against_a_quota_of_eight_grant_exactly_eight(crowd: Crowd) -> None:
    create_gpus(8)
    kestrel, slice_ = create_tenant(), offering("1g.10gb").pk
    kestrel.set_quota(QuotaKind.UNITS, 8_000)
    for _ in range(TIMES):
        answers = crowd.all_at_once(lambda number: granted(kestrel, slice_, number))
        assert sum(answers) == 8
        assert kestrel.quota_used() == 8_000
        with tenant_scope(kestrel.tenant.pk):
            waiting = list(Lease.objects.filter(state="queued"))
        for lease in waiting:
            finish(lease.pk, lease.tenant_id)
        assert kestrel.quota_used() == 0


@pytest.mark.deep
def test_a_hundred_requests_for_one_free_slice_place_exactly_one(crowd: Crowd) -> None:
    create_gpus(1)
    tenants = [create_tenant(f"Tenant {n}", units=100_000) for n in range(4)]
    gpu = offering("whole-gpu").pk
    for _ in range(TIMES):

        def request_and_place(number: int) -> str:
            owner = tenants[number % len(tenants)]
            lease = request_one(owner, gpu, number)
            with tenant_scope(owner.tenant.pk):
                lease_placement.place_lease(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
            return reload_lease(lease).state

        states = Counter(crowd.all_at_once(request_and_place))
        assert states == {"provisioning": 1, "queued": PARALLEL - 1}
        with system_scope():
            assert Allocation.objects.filter(released_at=None).count() == 1
        end_placed()  # those in the queue stay there: each round is about its own hundred
        with system_scope():
            assert Allocation.objects.filter(released_at=None).count() == 0


@pytest.mark.deep
def test_a_hundred_workers_serving_one_queue_place_every_lease_once(crowd: Crowd) -> None:
    create_fleet()
    kestrel, slice_ = create_tenant(), offering("1g.10gb").pk
    leases = [request_one(kestrel, slice_, number) for number in range(60)]
    crowd.all_at_once(lambda _: queue_scheduling.run_queue(("H100-80GB", "eu-north"), now=NOW))
    queue_scheduling.run_queue(("H100-80GB", "eu-north"), now=NOW)
    assert Counter(len(held_allocations(lease)) for lease in leases) == {1: 56, 0: 4}


@pytest.mark.deep
def test_concurrent_gangs_on_the_same_gpus_do_not_deadlock(crowd: Crowd) -> None:
    create_gpus(8)
    kestrel, gpu = create_tenant(units=10_000), offering("whole-gpu").pk

    def gang(number: int) -> int:
        with tenant_scope(kestrel.tenant.pk):
            lease = request_lease(
                LeaseRequest(offering_id=gpu, name=f"gang-{number}", max_duration_s=3600, quantity=2 + number % 3),
                project=kestrel.project,
                actor=kestrel.actor,
                now=NOW,
            )
        with tenant_scope(kestrel.tenant.pk):
            lease_placement.place_lease(Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW)
        return len(held_allocations(lease))

    sizes = crowd.all_at_once(gang)
    assert 4 <= sum(sizes) <= 8
    assert all(size in (0, 2 + number % 3) for number, size in enumerate(sizes))


def test_a_gang_that_cannot_lock_all_its_gpus_keeps_no_lock(own_database: OwnDatabase) -> None:
    create_gpus(4)
    kestrel, gpu = create_tenant(), offering("whole-gpu").pk
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        with tenant_scope(kestrel.tenant.pk):
            wanted = LeaseRequest(offering_id=gpu, name="gang", max_duration_s=3600, quantity=2)
            lease = request_lease(wanted, project=kestrel.project, actor=kestrel.actor, now=NOW)
        first, second = Gpu.objects.order_by("pk").values_list("pk", flat=True)[:2]
        another = connections["default"].copy()
        try:
            with another.cursor() as theirs:
                theirs.execute("BEGIN")
                theirs.execute(TAKE, [first])
                with tenant_scope(kestrel.tenant.pk):
                    assert lease_placement.place_lease(
                        Lease.objects.select_related("offering").get(pk=lease.pk), now=NOW
                    )
                    assert {place.gpu_id for place in held_allocations(lease)}.isdisjoint([first, second])
                    theirs.execute(TAKE, [second])  # raises if the placement still holds the lock
                    assert theirs.fetchone() == (second,)
                theirs.execute("ROLLBACK")
        finally:
            another.close()


def test_a_slot_released_during_a_waiting_allocation_is_held_from_its_release(
    own_database: OwnDatabase,
) -> None:
    create_gpus(1)
    kestrel, gpu, left = create_tenant(), offering("whole-gpu").pk, NOW + timedelta(seconds=2)
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        lease = request_one(kestrel, gpu, 0)
        queue_scheduling.run_queue(("H100-80GB", "eu-north"), now=NOW)
        (place,) = held_allocations(lease)
        with ThreadPoolExecutor(1) as pool, tenant_scope(kestrel.tenant.pk):
            Allocation.objects.filter(pk=place.pk).update(released_at=left)  # it is being written
            since = pool.submit(allocate_again, place)
            wait_until_blocked(since)
        assert since.result(30) == left


def allocate_again(place: Allocation) -> datetime:
    """Allocate a slot by an older clock; return its start."""
    place.pk, place._state.adding = allocation_id(), True
    try:
        with tenant_scope(place.tenant_id):
            place.save()
            place.refresh_from_db()
            return place.held_at
    finally:
        connections.close_all()


def wait_until_blocked(holder: Future[datetime]) -> None:
    """Return once a session of this database waits for a lock."""
    for _ in range(1000):
        if holder.done():
            raise AssertionError(f"it did not wait: {holder.result()}")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees sessions as they were at first
            cursor.execute(WAITING)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    raise AssertionError("no session waited for the slot that is being released")


def test_a_hundred_releases_of_one_lease_end_it_once(crowd: Crowd) -> None:
    create_gpus(1)
    kestrel, gpu = create_tenant(), offering("whole-gpu").pk
    lease = request_one(kestrel, gpu, 0)
    queue_scheduling.run_queue(("H100-80GB", "eu-north"), now=NOW)

    def release(_: int) -> None:
        with tenant_scope(kestrel.tenant.pk):
            termination.release_lease(reload_lease(lease), reason=EndReason.BY_TENANT, now=NOW)

    crowd.all_at_once(release)
    assert reload_lease(lease).state == "releasing"
    assert reload_lease(lease).seq == 3


@pytest.mark.deep
def test_a_hundred_concurrent_extensions_all_count(crowd: Crowd) -> None:
    create_gpus(1)
    kestrel, slice_ = create_tenant(), offering("1g.10gb").pk
    kestrel.set_quota(QuotaKind.GPU_SECONDS, 10**12)
    lease = request_one(kestrel, slice_, 0)

    def longer(_: int) -> datetime | None:
        with tenant_scope(kestrel.tenant.pk):
            return extend_lease(lease, more_s=60, actor=kestrel.actor, now=NOW).ends_at

    crowd.all_at_once(longer)
    assert reload_lease(lease).max_duration_s == 3600 + PARALLEL * 60
    assert kestrel.quota_used(QuotaKind.GPU_SECONDS) == (3600 + PARALLEL * 60) * 1000
