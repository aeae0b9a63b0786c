"""Outbox messages: storage, relay, deduplication and claims."""

from datetime import timedelta
from typing import Any

import pytest
import structlog
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from ports import outbox, outbox_relay
from ports.models import OutboxMessage
from ports.outbox_relay import CLAIM_DURATION, next_due, send_due_messages
from tests.simulation import NOW

pytestmark = pytest.mark.django_db
Hint = tuple[str, str, str]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Hint]:
    sent: list[Hint] = []
    monkeypatch.setattr(outbox, "send", lambda *hint: sent.append(hint))
    return sent


def test_a_message_is_a_row_of_the_same_transaction() -> None:
    with transaction.atomic():
        outbox.enqueue("broker.reconcile_lease", "lse_1", tenant_id="ten_1", now=NOW)
        transaction.set_rollback(True)
    assert not OutboxMessage.objects.exists()
    outbox.enqueue("broker.reconcile_lease", "lse_1", tenant_id="ten_1", now=NOW, after_s=2)
    message = OutboxMessage.objects.get()
    assert (message.task, message.subject, message.tenant_id) == ("broker.reconcile_lease", "lse_1", "ten_1")
    assert message.at == NOW + timedelta(seconds=2)
    assert str(message) == "broker.reconcile_lease(lse_1)"


def test_messages_for_many_subjects_are_a_row_each(sent: list[Hint]) -> None:
    outbox.enqueue_for_each("broker.reconcile_lease", ["lse_1", "lse_2"], tenant_id="ten_1", now=NOW)
    outbox.enqueue_for_each("broker.reconcile_lease", [], tenant_id="ten_1", now=NOW)
    heard = []
    with outbox.captured(lambda *hint: heard.append(hint)):
        outbox.enqueue_for_each("broker.reconcile_lease", ["lse_3"], tenant_id="ten_1", now=NOW)
    assert heard == [("broker.reconcile_lease", "lse_3", "ten_1", NOW)]
    assert send_due_messages(now=NOW) == 2
    assert sent == [("broker.reconcile_lease", "lse_1", "ten_1"), ("broker.reconcile_lease", "lse_2", "ten_1")]


def test_due_messages_are_sent_in_order_and_deleted(sent: list[Hint]) -> None:
    outbox.enqueue("b", "second", now=NOW, after_s=1)
    outbox.enqueue("a", "first", tenant_id="ten", now=NOW)
    outbox.enqueue("c", "later", now=NOW, after_s=60)
    assert send_due_messages(now=NOW + timedelta(seconds=2)) == 2
    assert sent == [("a", "first", "ten"), ("b", "second", "")]
    assert [message.subject for message in OutboxMessage.objects.all()] == ["later"]
    assert send_due_messages(now=NOW + timedelta(seconds=2)) == 0


def test_a_repeated_message_is_sent_once_per_batch(sent: list[Hint]) -> None:
    for _ in range(50):
        outbox.enqueue("broker.run_queue", "pool", now=NOW)
    assert send_due_messages(now=NOW) == 50
    assert sent == [("broker.run_queue", "pool", "")]
    assert not OutboxMessage.objects.exists()


def test_an_unavailable_queue_loses_and_repeats_no_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(3):
        outbox.enqueue("broker.reconcile_lease", f"lse_{number}", now=NOW)
    said: list[str] = []

    def once(task: str, subject: str, tenant_id: str) -> None:
        if len(said) == 1:
            raise OperationalError("connection refused")
        said.append(subject)

    monkeypatch.setattr(outbox, "send", once)
    with pytest.raises(OperationalError):
        send_due_messages(now=NOW)
    left = OutboxMessage.objects.order_by("id")
    assert [message.subject for message in left] == ["lse_1", "lse_2"]
    assert {message.claimed_until for message in left} == {None}


def test_messages_of_a_killed_relay_are_sent_after_its_claim_expires(sent: list[Hint]) -> None:
    outbox.enqueue("broker.reconcile_lease", "lse_1", now=NOW)
    OutboxMessage.objects.update(claimed_until=NOW + CLAIM_DURATION)
    assert send_due_messages(now=NOW + CLAIM_DURATION) == 0
    assert send_due_messages(now=NOW + CLAIM_DURATION + timedelta(seconds=1)) == 1
    assert len(sent) == 1


def test_messages_of_leases_are_sent_before_the_e_mails_of_a_month(
    sent: list[Hint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_relay, "BATCH", 2)
    for number in range(3):
        outbox.enqueue("billing.send_email", f"eml_{number}", now=NOW)
    outbox.enqueue("broker.reconcile_lease", "lse_1", now=NOW)
    assert send_due_messages(now=NOW) == 2
    assert {subject for _, subject, *_ in sent} == {"lse_1", "eml_0"}


def test_the_next_due_time_is_that_of_the_earliest_unclaimed_message(sent: list[Hint]) -> None:
    assert next_due() is None
    outbox.enqueue("broker.reconcile_lease", "later", now=NOW, after_s=9)
    outbox.enqueue("broker.reconcile_lease", "sooner", now=NOW, after_s=5)
    assert next_due() == NOW + timedelta(seconds=5)
    OutboxMessage.objects.filter(subject="sooner").update(claimed_until=NOW)
    assert next_due() == NOW + timedelta(seconds=9)


def test_a_celery_message_contains_only_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[Any] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **rest: messages.append((name, rest)))
    outbox.send("broker.reconcile_lease", "lse_1", "ten_1")
    outbox.send("broker.run_queue", "pool", "")
    assert [(name, rest["args"]) for name, rest in messages] == [
        ("broker.reconcile_lease", ["lse_1", "ten_1"]),
        ("broker.run_queue", ["pool"]),
    ]
    assert not any(rest["retry"] for _, rest in messages)


def test_an_outbox_message_carries_the_id_of_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[Any] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **rest: messages.append(rest["headers"]))
    outbox.enqueue("broker.run_queue", "pool", now=NOW)
    with structlog.contextvars.bound_contextvars(request_id="req_1"):
        outbox.enqueue("broker.reconcile_lease", "lse_1", tenant_id="ten_1", now=NOW)
        outbox.enqueue("broker.reconcile_lease", "lse_1", tenant_id="ten_1", now=NOW)
    assert send_due_messages(now=NOW) == 3
    assert messages == [None, {"request_id": "req_1"}]


def test_a_capture_block_receives_messages_instead_of_the_outbox() -> None:
    heard: list[Any] = []
    with outbox.captured(lambda *hint: heard.append(hint)):
        outbox.enqueue("broker.reconcile_lease", "lse_1", tenant_id="ten_1", now=NOW)
    assert heard == [("broker.reconcile_lease", "lse_1", "ten_1", NOW)]
    outbox.enqueue("broker.reconcile_lease", "lse_2", now=NOW)
    assert OutboxMessage.objects.count() == 1


def test_queue_reachability_is_tested_by_a_connection(valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not outbox.is_broker_reachable()
    monkeypatch.setattr(current_app.conf, "broker_write_url", valkey_url)
    assert outbox.is_broker_reachable()


def test_the_task_decorator_registers_a_function_under_its_name() -> None:
    @outbox.task("tests.echo")
    def echo(subject: str) -> str:
        return subject

    current_app.finalize()
    assert current_app.tasks["tests.echo"]("lse_1") == "lse_1"
    assert echo("lse_2") == "lse_2"
    del current_app.tasks["tests.echo"]
