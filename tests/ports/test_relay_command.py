"""The relay command: wake-ups and outages."""

import threading
import time
from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection, connections
from kombu.exceptions import OperationalError as BrokerAway

from broker.management.commands import relay as command
from ports import clock, outbox
from ports.models import OutboxMessage
from tests.database import OwnDatabase


@pytest.fixture
def short_retry_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "RETRY_INTERVAL_S", 0.01)
    monkeypatch.setattr(command, "MAX_WAIT_S", 600.0)  # within a test, only a notification ends the wait


@pytest.fixture
def running(own_database: OwnDatabase, short_retry_interval: None) -> Iterator[command.Command]:
    """Run the command in a thread; signals belong to the main one."""
    relay = command.Command()

    def run() -> None:
        try:
            relay.relay_messages()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    yield relay
    relay._stop()
    outbox.enqueue("broker.reconcile_lease", "lse_last", now=clock.now())  # which wakes it
    thread.join(60)
    assert not thread.is_alive()


def wait_until(done: object, *, seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if done():  # type: ignore[operator]
            return True
        time.sleep(0.01)
    return False


def test_a_message_is_sent_when_it_is_due(running: command.Command, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(outbox, "send", lambda task, subject, tenant: sent.append(subject))
    outbox.enqueue("broker.reconcile_lease", "lse_1", now=clock.now())
    assert wait_until(lambda: sent)
    outbox.enqueue("broker.reconcile_lease", "lse_2", now=clock.now(), after_s=0.3)
    assert wait_until(lambda: len(sent) == 2)
    assert wait_until(lambda: not OutboxMessage.objects.exists())


def test_sending_to_an_unavailable_queue_is_retried(running: command.Command, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def away_twice(task: str, subject: str, tenant_id: str) -> None:
        tried.append(subject)
        if len(tried) < 3:
            raise BrokerAway("refused")

    monkeypatch.setattr(outbox, "send", away_twice)
    outbox.enqueue("broker.reconcile_lease", "lse_1", now=clock.now())
    assert wait_until(lambda: not OutboxMessage.objects.exists())
    assert tried == ["lse_1"] * 3


def test_a_lost_database_connection_is_reopened(running: command.Command, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(outbox, "send", lambda task, subject, tenant: sent.append(subject))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    outbox.enqueue("broker.reconcile_lease", "lse_1", now=clock.now())
    assert wait_until(lambda: sent == ["lse_1"])


def test_the_relay_command_handles_signals_and_stops(
    short_retry_interval: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay, handled = command.Command(), []
    monkeypatch.setattr(command.signal, "signal", lambda number, what: handled.append(number))

    def carry() -> None:
        if not handled[2:]:
            handled.append("once")
            raise OperationalError("gone")
        relay._stop()

    monkeypatch.setattr(relay, "_relay_until_stopped", carry)
    monkeypatch.setattr(command, "connection", connection)
    relay.handle()
    assert handled == [command.signal.SIGTERM, command.signal.SIGINT, "once"]
