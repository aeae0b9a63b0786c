"""Log lines of a lease's state changes."""

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
def log_level(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO):
        yield


def logged_states(caplog: pytest.LogCaptureFixture, **about: str) -> list[str]:
    reported = [
        line for line in lines(caplog) if line["event"] == "lease state changed" and line.items() >= about.items()
    ]
    return [line["after"] for line in reported]


def test_every_state_change_is_one_log_line_with_the_lease_id(
    sim: Simulation, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Committed
) -> None:
    create_fleet()
    with django_capture_on_commit_callbacks(execute=True):
        lease = sim.create_lease(create_tenant(), offering(), LeaseState.RELEASED)
    path = ["queued", "provisioning", "active", "releasing", "released"]
    assert logged_states(caplog, lease_id=lease.pk, tenant_id=lease.tenant_id) == path
    assert logged_states(caplog, reason="by_tenant") == ["releasing", "released"]
    assert logged_states(caplog, reason="none") == []


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
    assert logged_states(caplog) == []


def test_a_request_id_is_logged_and_passed_on_in_the_outbox(
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
        assert logged_states(caplog, lease_id=lease, request_id="req-7") == ["queued"]
        message = OutboxMessage.objects.get(subject=lease)
        assert message.request_id == "req-7"
        run_task(message.task, message.subject, message.tenant_id, now=NOW)
    assert "provisioning" in logged_states(caplog, lease_id=lease)
