"""The logs tell every step of a lease with its id and the request that set it off, and never what was undone."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import transaction

from broker.domain.states import LeaseState
from broker.models.telling import untold
from ports import clock
from ports.models import Ring
from tests.broker.api.conftest import Api
from tests.database import OwnDatabase
from tests.ports.test_answering import lines
from tests.world import NOW, Home, Life, cards, fleet, home, offering, work

Committed = Callable[..., AbstractContextManager[list[Callable[..., Any]]]]


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO):
        yield


def moves(caplog: pytest.LogCaptureFixture, **about: str) -> list[str]:
    told = [
        line for line in lines(caplog) if line["event"] == "lease moved" and line.items() >= about.items()
    ]
    return [line["after"] for line in told]


def test_every_step_of_a_life_is_one_line_with_the_leases_id(
    life: Life, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Committed
) -> None:
    fleet()
    with django_capture_on_commit_callbacks(execute=True):
        lease = life.lease(home(), offering(), LeaseState.RELEASED)
    path = ["queued", "provisioning", "active", "releasing", "released"]
    assert moves(caplog, lease_id=lease.pk, tenant_id=lease.tenant_id) == path
    assert moves(caplog, reason="by_tenant") == ["releasing", "released"]
    assert moves(caplog, reason="none") == []


def test_what_is_undone_was_never_told(
    life: Life, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Committed
) -> None:
    fleet()
    owner = home()
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        life.ask(owner, offering())
        transaction.set_rollback(True)
    with django_capture_on_commit_callbacks(execute=True), untold():
        life.ask(owner, offering())
    assert moves(caplog) == []


def test_a_request_is_found_in_each_line_of_what_it_set_off(
    own_database: OwnDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    with clock.standing_at(NOW):
        cards(1)
        owner: Home = home()
        body = {
            "name": "job",
            "project": owner.project.pk,
            "offering": offering().pk,
            "max_duration_s": 3600,
        }
        answer = Api(owner.token()).post("leases", body, Idempotency_Key="one", X_Request_ID="req-7")
        lease = answer.json()["id"]
        assert moves(caplog, lease_id=lease, request_id="req-7") == ["queued"]
        ring = Ring.objects.get(subject=lease)
        assert ring.request_id == "req-7"
        work(ring.task, ring.subject, ring.tenant_id, now=NOW)
    assert "provisioning" in moves(caplog, lease_id=lease)
