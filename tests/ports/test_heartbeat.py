"""Heartbeat files of running processes."""

import os
from pathlib import Path
from typing import Any

import pytest
from celery.beat import PersistentScheduler
from django.conf import settings as django_settings
from django.db import OperationalError

from broker.management.commands import kube_agent
from broker.management.commands import relay as relaying
from broker.models import Cluster
from config.beat import HeartbeatScheduler
from ports import clock, heartbeat


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


def test_a_heartbeat_file_is_touched_once_per_interval(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sign, file, moments = heartbeat.HeartbeatFile("relay"), folder / "alive-relay", [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: moments[-1])
    sign()
    os.utime(file, (0, 0))
    for passed, touched in ((heartbeat.INTERVAL_S - 1, False), (heartbeat.INTERVAL_S, True)):
        moments.append(100 + passed)
        sign()
        assert (file.stat().st_mtime > 0) is touched


def test_a_missing_heartbeat_folder_raises_no_error(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "not" / "there"
    heartbeat.HeartbeatFile("relay")()


def test_celery_beat_touches_its_heartbeat_file_at_every_tick(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert django_settings.CELERY_BEAT_SCHEDULER == "config.beat:HeartbeatScheduler"
    monkeypatch.setattr(PersistentScheduler, "__init__", lambda self: None)
    monkeypatch.setattr(PersistentScheduler, "tick", lambda self: 5)
    assert HeartbeatScheduler().tick() == 5.0
    assert (folder / "alive-beat").exists()


def test_the_relay_touches_its_heartbeat_file_without_a_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relay = relaying.Command()

    def away() -> None:
        relay.running = False
        raise OperationalError("it restarts")

    monkeypatch.setattr(relay, "_relay_until_stopped", away)
    monkeypatch.setattr(relaying.clock, "sleep", lambda seconds: None)
    relay.relay_messages()
    assert (folder / "alive-relay").exists()


def test_an_agent_of_a_frozen_cluster_touches_its_heartbeat_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = kube_agent.Command()

    def stops(seconds: float) -> None:
        command.running = False

    monkeypatch.setattr(kube_agent.cluster_freeze, "is_frozen", lambda pk: True)
    monkeypatch.setattr(kube_agent.clock, "sleep", stops)
    command.follow(Cluster(id="clu_east", name="east"))
    assert (folder / "alive-agent").exists()
