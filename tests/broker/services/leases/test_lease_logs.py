"""Logs name every committed step of a lease with its request."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import transaction

from broker.domain.lifecycle.states import LeaseState
from broker.models.transitions import transitions_not_logged
from ports import clock
from ports.models import OutboxMessage
from tests.database import OwnDatabase
from tests.ports.test_worker_tasks import lines
from tests.simulation import (
    NOW,
    Simulation,
    TenantContext,
    create_fleet,
    create_gpus,
    create_tenant,
    offering,
    run_task,
)
from tests.web.api.broker.conftest import Api

Committed = Callable[..., AbstractContextManager[list[Callable[..., Any]]]]


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO):
        yield


def moves(caplog: pytest.LogCaptureFixture, **about: str) -> list[str]:
    reported = [
        line for line in lines(caplog) if line["event"] == "lease state changed" and line.items() >= about.items()
    ]
    return [line["after"] for line in reported]


def test_every_step_of_a_life_is_one_line_with_the_leases_id(
    sim: Simulation, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Committed
) -> None:
    create_fleet()
    with django_capture_on_commit_callbacks(execute=True):
        lease = sim.create_lease(create_tenant(), offering(), LeaseState.RELEASED)
    path = ["queued", "provisioning", "active", "releasing", "released"]
    assert moves(caplog, lease_id=lease.pk, tenant_id=lease.tenant_id) == path
    assert moves(caplog, reason="by_tenant") == ["releasing", "released"]
    assert moves(caplog, reason="none") == []


def test_a_rolled_back_transition_is_not_logged(
    sim: Simulation, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Committed
) -> None:
    create_fleet()
    owner = create_tenant()
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        sim.request_lease(owner, offering())
        transaction.set_rollback(True)
    with django_capture_on_commit_callbacks(execute=True), transitions_not_logged():
        sim.request_lease(owner, offering())
    assert moves(caplog) == []


def test_a_request_is_found_in_each_line_of_what_it_set_off(
    own_database: OwnDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    with clock.frozen_at(NOW):
        create_gpus(1)
        owner: TenantContext = create_tenant()
        body = {
            "name": "job",
            "project": owner.project.pk,
            "offering": offering().pk,
            "max_duration_s": 3600,
        }
        answer = Api(owner.token()).post("leases", body, Idempotency_Key="one", X_Request_ID="req-7")
        lease = answer.json()["id"]
        assert moves(caplog, lease_id=lease, request_id="req-7") == ["queued"]
        message = OutboxMessage.objects.get(subject=lease)
        assert message.request_id == "req-7"
        run_task(message.task, message.subject, message.tenant_id, now=NOW)
    assert "provisioning" in moves(caplog, lease_id=lease)
