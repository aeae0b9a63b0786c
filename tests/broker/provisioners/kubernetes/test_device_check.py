"""Checks of a lease's GPUs from inside its pods, while its node is short of devices."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from broker.models import Cluster
from broker.provisioners.base import ClusterUnreachable, CommandFailed, ObservedState
from broker.provisioners.kubernetes import device_check
from tests.broker.provisioners.kubernetes.scripted_server import StartServer
from tests.broker.provisioners.kubernetes.test_observation_cache import Scene, provision_spec
from tests.simulation import NOW

SINCE = NOW - timedelta(seconds=20)
IN_DOUBT = replace(provision_spec(), device_doubt="its node offers fewer devices", device_doubted_since=SINCE)
LOST_GPU = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost. Reboot the system"
NO_TOOL = 'OCI runtime exec failed: exec: "nvidia-smi": executable file not found in $PATH'


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Exception | None]:
    """What nvidia-smi comes to in the pods; an error raised, or nothing."""
    found: list[Exception | None] = []

    def run(connection: Any, *, command: Sequence[str], answer_s: float, **where: str) -> None:
        assert list(command) == ["/usr/bin/nvidia-smi", "-L"]
        if answer := found.pop(0):
            raise answer

    monkeypatch.setattr(device_check, "run_in_pod", run)
    return found


def test_the_lease_whose_gpu_does_not_answer_is_the_lost_one(
    cluster: Cluster, serve: StartServer, answers: list[Exception | None]
) -> None:
    scene = Scene(cluster, serve())
    scene.runs()
    answers.append(CommandFailed(LOST_GPU))
    seen = scene.provisioner.observe(IN_DOUBT, now=NOW)
    assert (seen.seen, seen.last_seen, seen.undated) == (ObservedState.LOST, NOW, True)
    assert seen.text == f"its GPU is reported as unhealthy: {LOST_GPU}"


def test_a_lost_gpu_stays_lost_once_its_node_is_no_longer_in_doubt(
    cluster: Cluster, serve: StartServer, answers: list[Exception | None]
) -> None:
    scene = Scene(cluster, serve())
    scene.runs()
    answers.extend([CommandFailed(LOST_GPU), None])
    failed = replace(provision_spec(), device_failed=True)
    assert scene.provisioner.observe(failed, now=NOW).seen is ObservedState.LOST
    assert scene.provisioner.observe(failed, now=NOW).seen is ObservedState.READY


@pytest.mark.parametrize("answer", [None, CommandFailed(NO_TOOL), ClusterUnreachable("timed out")])
def test_a_lease_whose_gpu_answers_or_cannot_be_asked_goes_on(
    cluster: Cluster, serve: StartServer, answers: list[Exception | None], answer: Exception | None
) -> None:
    scene = Scene(cluster, serve())
    scene.runs()
    answers.append(answer)
    assert scene.provisioner.observe(IN_DOUBT, now=NOW).seen is ObservedState.READY
    assert answers == []


def test_nobody_is_asked_while_no_device_is_missing(
    cluster: Cluster, serve: StartServer, answers: list[Exception | None]
) -> None:
    scene = Scene(cluster, serve())
    scene.runs()
    assert scene.provisioner.observe(provision_spec(), now=NOW).seen is ObservedState.READY
