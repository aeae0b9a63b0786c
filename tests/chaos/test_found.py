"""Regression tests of failures found by the burst."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import TracebackType

import pytest
from django.db import InterfaceError, InternalError, OperationalError
from django.test import Client
from psycopg.errors import ReadOnlySqlTransaction

from broker.models import Allocation
from broker.services.leases.lifecycle import termination
from broker.services.queue import queue_scheduling
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
    simulate,
)


@pytest.fixture
def sim(db: None) -> Iterator[Simulation]:
    with simulate() as sim:
        yield sim


def test_an_allocation_never_starts_before_the_previous_release(sim: Simulation) -> None:
    create_gpus(1)
    first = sim.create_lease(create_tenant(), offering("whole-gpu"))
    second = sim.request_lease(create_tenant("Swift"), offering("whole-gpu"))
    sim.run(1)
    earlier = sim.now  # then the placer waits for a lock, and meanwhile the first one leaves
    sim.release_lease(first)
    sim.clock.at += timedelta(seconds=2)
    with tenant_scope(first.tenant_id):
        termination.finish_release(reload_lease(first), now=sim.now)
        left = Allocation.objects.get(lease=first).released_at
    assert queue_scheduling.run_queue((MODEL, REGION), now=earlier) == 1
    assert [place.held_at for place in held_allocations(second)] == [left]
    assert left is not None
    assert left > earlier


def test_a_slot_beside_a_released_one_is_allocated_without_delay(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    first, stays = sim.create_lease(kestrel, offering("3g.40gb")), sim.create_lease(kestrel, offering("1g.10gb"))
    earlier = sim.now
    sim.release_lease(first)
    sim.clock.at += timedelta(seconds=2)
    with tenant_scope(first.tenant_id):
        termination.finish_release(reload_lease(first), now=sim.now)
    beside = sim.request_lease(kestrel, offering("1g.10gb"))
    queue_scheduling.run_queue((MODEL, REGION), now=earlier)
    (place,), (before,) = held_allocations(beside), held_allocations(stays)
    assert place.gpu_id == before.gpu_id
    assert place.held_at == earlier


class Breaking:
    """A transaction that fails at its begin or its commit."""

    def __init__(self, failure: Exception, *, at_the_end: bool) -> None:
        self.failure, self.at_the_end = failure, at_the_end

    def atomic(self) -> "Breaking":
        return self

    def set_rollback(self, rollback: bool) -> None:
        pass

    def __enter__(self) -> None:
        if not self.at_the_end:
            raise self.failure

    def __exit__(self, kind: type[BaseException] | None, what: object, where: TracebackType | None) -> None:
        if self.at_the_end:
            raise self.failure


def read_only() -> InternalError:
    failure = InternalError("cannot execute INSERT in a read-only transaction")
    failure.__cause__ = ReadOnlySqlTransaction()
    return failure


@pytest.mark.django_db
@pytest.mark.parametrize(
    "failure",
    [lambda: OperationalError("terminating connection"), lambda: InterfaceError("closed"), read_only],
    ids=["terminated", "closed", "read-only"],
)
@pytest.mark.parametrize("at_the_end", [False, True], ids=["at the begin", "at the commit"])
def test_a_lost_database_returns_503_before_and_after_the_view(
    failure: Callable[[], Exception], at_the_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking = Breaking(failure(), at_the_end=at_the_end)
    monkeypatch.setattr("web.http.middleware.transaction", breaking)
    visitor = Client(raise_request_exception=False)
    answer = visitor.get("/api/v1/nothing-here")
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert answer["Retry-After"] == "2"
    assert "its response was lost" in answer.json()["detail"]
    page = visitor.get("/nothing-here")
    assert page.status_code == 503
    assert "The database is busy or unavailable" in page.content.decode()


@pytest.mark.django_db
def test_any_other_database_error_returns_500(monkeypatch: pytest.MonkeyPatch) -> None:
    breaking = Breaking(InternalError("cache lookup failed"), at_the_end=True)
    monkeypatch.setattr("web.http.middleware.transaction", breaking)
    answer = Client(raise_request_exception=False).get("/api/v1/nothing-here")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")


def test_request_counters_are_in_shared_memory_if_available(tmp_path: Path) -> None:
    from config.metrics import counters_directory  # counts from its import on

    memory, elsewhere = tmp_path / "memory", tmp_path / "disk"
    memory.mkdir()
    assert counters_directory(elsewhere, memory).parent == memory
    assert counters_directory(elsewhere, memory) != counters_directory(tmp_path / "another", memory)
    assert counters_directory(memory / "of-tests", memory) == memory / "of-tests/metrics"
    assert counters_directory(elsewhere, tmp_path / "no-such-memory") == elsewhere / "metrics"
