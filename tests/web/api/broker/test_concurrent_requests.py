"""Concurrent API requests and lock timeouts."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction

from broker.models import Lease
from ports import clock, outbox
from tenants.models import IdempotencyRecord, Quota
from tenants.services.rls import system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.simulation import NOW, TenantContext, create_gpus, create_tenant, offering
from tests.web.api.broker.conftest import Api

PARALLEL = 24


@pytest.fixture
def owner(own_database: OwnDatabase) -> Iterator[TenantContext]:
    with clock.frozen_at(NOW), outbox.captured(lambda *hint: None):
        create_gpus(1)
        yield create_tenant("Kestrel")


def body(owner: TenantContext, **other: Any) -> dict[str, Any]:
    return {
        "name": "job",
        "project": owner.project.pk,
        "offering": offering().pk,
        "max_duration_s": 3600,
        **other,
    }


def count() -> tuple[int, int]:
    with system_scope():
        return Lease.objects.count(), IdempotencyRecord.objects.count()


def in_parallel(act: Any) -> list[Any]:
    start = threading.Barrier(PARALLEL)

    def one(number: int) -> Any:
        try:
            connection.ensure_connection()
            start.wait(60)
            return act(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(PARALLEL) as pool:
        return list(pool.map(one, range(PARALLEL)))


def test_concurrent_requests_with_one_key_create_one_lease(owner: TenantContext) -> None:
    token, wanted = owner.token(), body(owner)
    answers = in_parallel(lambda _: Api(token).post("leases", wanted, Idempotency_Key="the same"))
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert {a.body["code"] for a in answers if a.status_code == 409} <= {"idempotency-in-flight"}
    assert len({a.body["id"] for a in answers if a.status_code == 202}) == 1
    assert count() == (1, 1)
    again = Api(token).post("leases", wanted, Idempotency_Key="the same")
    assert again["Idempotency-Replayed"] == "true"


@pytest.mark.deep
def test_concurrent_requests_with_different_keys_create_different_leases(owner: TenantContext) -> None:
    token, wanted = owner.token(), body(owner)
    answers = in_parallel(lambda n: Api(token).post("leases", wanted, Idempotency_Key=f"key {n}"))
    assert {answer.status_code for answer in answers} == {202}
    assert count() == (PARALLEL, PARALLEL)
    assert owner.quota_used() == PARALLEL * 1000


def test_a_lock_timeout_returns_503_with_retry_after(owner: TenantContext) -> None:
    api, wanted = Api(owner.token()), body(owner)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with tenant_scope(owner.tenant.pk):
                list(Quota.objects.select_for_update())
                held.set()
                let_go.wait(60)
        finally:
            connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")
    answer = api.post("leases", wanted, Idempotency_Key="patient")
    let_go.set()
    holder.join()
    assert (answer.status_code, answer.body["code"]) == (503, "busy")
    assert int(answer["Retry-After"]) > 0
    assert count() == (0, 0)
    assert api.post("leases", wanted, Idempotency_Key="patient").status_code == 202
    assert count() == (1, 1)


def test_a_second_lease_under_one_key_is_rolled_back_by_the_unique_key(
    owner: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulate a stored answer that the lookup did not find."""
    from tenants.services import idempotency

    api, wanted = Api(owner.token()), body(owner)
    assert api.post("leases", wanted, Idempotency_Key="k").status_code == 202
    with monkeypatch.context() as blind:
        blind.setattr(idempotency, "start_lookup", lambda requested: lambda: None)
        second = api.post("leases", wanted, Idempotency_Key="k")
    assert (second.status_code, second.body["code"]) == (409, "idempotency-in-flight")
    assert count() == (1, 1)
    assert not transaction.get_connection().in_atomic_block
    assert owner.quota_used() == 1000
