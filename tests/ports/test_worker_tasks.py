"""Connection handling and log context around Celery tasks."""

import json
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import structlog
from celery import Task, current_app
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection

from config.json_logs import LOGGING
from ports import outbox
from tests.database import OwnDatabase


def test_a_task_keeps_its_connection_and_replaces_a_broken_one(own_database: OwnDatabase) -> None:
    seen: list[int] = []

    @outbox.task("tests.who")
    def who(subject: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            seen.append(cursor.fetchone()[0])

    who("x")
    who("x")
    assert seen[0] == seen[1]
    with suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    who("x")
    assert seen[2] != seen[0]


def test_a_task_at_its_soft_limit_leaves_a_usable_connection(own_database: OwnDatabase) -> None:
    def interrupt(*_: object) -> None:
        raise SoftTimeLimitExceeded

    @outbox.task("tests.sleep")
    def sleep(subject: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_sleep({subject})")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(SoftTimeLimitExceeded):
            sleep("20")
        sleep("0")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def tests_task() -> Iterator[Task]:
    """Return a task that logs a warning, or raises."""

    @outbox.task("tests.look")
    def look(subject: str = "", tenant_id: str = "") -> None:
        structlog.get_logger("tests").warning("looked")
        if subject.endswith("broken"):
            raise KeyError(subject)

    current_app.finalize()
    yield current_app.tasks["tests.look"]
    del current_app.tasks["tests.look"]


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return the logged lines in the JSON format of an installation."""
    form = {name: value for name, value in LOGGING["formatters"]["json"].items() if name != "()"}
    formatter = structlog.stdlib.ProcessorFormatter(**form)
    return [json.loads(formatter.format(record)) for record in caplog.records]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("subject", "named"),
    [
        ("lse_1", {"lease_id": "lse_1"}),
        ("vol_1", {"volume_id": "vol_1"}),
        ("pay_1", {"payment_id": "pay_1"}),
        ("clu_1", {"cluster_id": "clu_1"}),
        ("lch_1", {"layout_change_id": "lch_1"}),
        ("mpl_1", {"plan_id": "mpl_1"}),
        ("H100|eu", {"subject": "H100|eu"}),
    ],
)
def test_a_line_logged_within_a_task_has_its_ids(
    tests_task: Task, caplog: pytest.LogCaptureFixture, subject: str, named: dict[str, str]
) -> None:
    tests_task.apply([subject, "ten_1"], headers={"request_id": "req_1"})
    (line,) = lines(caplog)
    assert line.items() >= {"task": "tests.look", "tenant_id": "ten_1", "request_id": "req_1", **named}.items()
    assert not {"lease_id", "request_id"} & structlog.contextvars.get_contextvars().keys()


@pytest.mark.django_db
def test_a_task_without_a_message_logs_only_its_name(tests_task: Task, caplog: pytest.LogCaptureFixture) -> None:
    tests_task.apply()
    (line,) = lines(caplog)
    assert line["task"] == "tests.look"
    assert not {"lease_id", "subject", "tenant_id", "request_id"} & line.keys()


@pytest.mark.django_db
def test_a_failed_task_is_logged_once_with_its_lease_and_request(
    tests_task: Task, caplog: pytest.LogCaptureFixture
) -> None:
    tests_task.apply(["lse_broken", "ten_1"], headers={"request_id": "req_1"})
    failed = [line for line in lines(caplog) if line["level"] == "error"]
    assert [line["event"] for line in failed] == ["task failed"]
    assert failed[0]["lease_id"] == "lse_broken"
    assert failed[0]["request_id"] == "req_1"
    assert "KeyError: 'lse_broken'" in failed[0]["exception"]
