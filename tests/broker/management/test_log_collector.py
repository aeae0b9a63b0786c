"""The log_collector command: what it collects, and how it survives an unreachable database."""

from typing import Any

import pytest
from django.db import OperationalError

from broker.management.commands import log_collector
from ports import clock


class Scene:
    """A command with played logs and a clock that stops it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.command = log_collector.Command()
        self.collected: list[tuple[str, str]] = []
        self.adopted = self.closed = 0
        self.failures: list[Exception] = []
        self.slept: list[float] = []
        monkeypatch.setattr(clock, "sleep", self.sleep)
        monkeypatch.setattr(clock, "now", lambda: None)
        monkeypatch.setattr(log_collector.connection, "close", self.close)
        monkeypatch.setattr(log_collector.log_collection, "begin_missing_logs", self.adopt)
        monkeypatch.setattr(
            log_collector.log_collection, "due_logs", lambda now: [("lse_1", "ten_1"), ("lse_2", "ten_1")]
        )
        monkeypatch.setattr(log_collector.log_collection, "collect_log", self.collect)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 2:
            self.command._stop()

    def close(self) -> None:
        self.closed += 1

    def adopt(self, *, now: Any) -> None:
        self.adopted += 1

    def collect(self, lease_id: str, tenant_id: str, *, now: Any) -> int:
        if self.failures:
            raise self.failures.pop()
        self.collected.append((lease_id, tenant_id))
        return 1


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_due_logs_are_collected_again_and_again(scene: Scene) -> None:
    scene.command.collect_logs()
    assert {"lse_1", "lse_2"} == {lease for lease, _ in scene.collected}
    assert (scene.adopted, scene.slept) == (1, [log_collector.POLL_INTERVAL_S] * 2)


def test_a_fault_of_one_log_does_not_end_the_others(scene: Scene) -> None:
    scene.failures = [ValueError("odd row")]
    scene.command.collect_logs()
    assert scene.collected


def test_it_waits_for_an_unreachable_database(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [OperationalError("the server closed the connection")]

    def due(now: Any) -> list[tuple[str, str]]:
        if refusals:
            raise refusals.pop()
        return []

    monkeypatch.setattr(log_collector.log_collection, "due_logs", due)
    scene.command.collect_logs()
    assert scene.slept == [log_collector.RETRY_INTERVAL_S, log_collector.POLL_INTERVAL_S]
    assert scene.closed == 1


def test_a_thread_drops_its_broken_connection(scene: Scene) -> None:
    scene.failures = [OperationalError("the server closed the connection")]
    with pytest.raises(OperationalError):
        log_collector.collect_one(("lse_1", "ten_1"))
    assert scene.closed == 1
