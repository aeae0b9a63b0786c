"""Scripts of simulated pods."""

import time
from datetime import datetime

import pytest

from tests.controlplane.api import Object
from tests.controlplane.manifests import pod, reason, state
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane


class Playground:
    """A node and a namespace, and pods on them."""

    def __init__(self, cluster: ControlPlane, nodes: Nodes, namespace: str) -> None:
        self.api, self.namespace = cluster.api, namespace
        self.node = nodes.add(GpuNode(gpus=2))

    def run(self, script: str = "", *, restart: str = "Never", image: str = "registry.example/box:1") -> str:
        path = f"/api/v1/namespaces/{self.namespace}/pods/played"
        self.api.create(pod("played", self.namespace, node=self.node, script=script, restart=restart, image=image))
        return path

    def phase(self, path: str, phase: str) -> Object:
        return self.api.until(path, lambda seen: seen["status"].get("phase") == phase)

    def reason(self, path: str, wanted: str) -> Object:
        return self.api.until(path, lambda seen: reason(seen) == wanted)


@pytest.fixture
def playground(control_plane: ControlPlane, gpu_nodes: Nodes, namespace: str) -> Playground:
    return Playground(control_plane, gpu_nodes, namespace)


def seconds(pod: Object) -> float:
    over = state(pod)["terminated"]
    began, ended = (datetime.fromisoformat(over[name]) for name in ("startedAt", "finishedAt"))
    return (ended - began).total_seconds()


def test_a_pod_without_a_script_is_running_at_once_and_ready(playground: Playground) -> None:
    seen = playground.phase(playground.run(), "Running")
    assert {one["type"]: one["status"] for one in seen["status"]["conditions"]}["Ready"] == "True"
    assert seen["status"]["podIP"].startswith("10.12")
    assert "startedAt" in state(seen)["running"]


def test_a_pod_with_a_slow_image_shows_container_creating_and_then_runs(playground: Playground) -> None:
    began = time.monotonic()
    path = playground.run("pull-4s")
    playground.reason(path, "ContainerCreating")
    playground.phase(path, "Running")
    assert time.monotonic() - began >= 4


def test_a_pod_whose_image_cannot_be_pulled_shows_image_pull_back_off(playground: Playground) -> None:
    path = playground.run("never-pulls")
    seen = playground.reason(path, "ImagePullBackOff")
    assert seen["status"]["phase"] == "Pending"
    events = playground.api.items(f"/api/v1/namespaces/{playground.namespace}/events")
    assert {"Failed", "BackOff"} <= {event["reason"] for event in events}


@pytest.mark.parametrize(
    ("script", "phase", "why", "code"),
    [
        ("succeed-2s", "Succeeded", "Completed", 0),
        ("fail-2s", "Failed", "Error", 1),
        ("oom-2s", "Failed", "OOMKilled", 137),
    ],
)
def test_a_program_ends_after_the_seconds_of_its_script(
    playground: Playground, script: str, phase: str, why: str, code: int
) -> None:
    seen = playground.phase(playground.run(script), phase)
    over = state(seen)["terminated"]
    assert (over["reason"], over["exitCode"]) == (why, code)
    assert 1 <= seconds(seen) <= 30  # a busy machine is late; a script that is not read ends never


def test_an_always_restarted_pod_backs_off_after_the_first_restart(playground: Playground) -> None:
    path = playground.run("oom-0.5s", restart="Always")
    again = playground.api.until(path, lambda seen: _restarts(seen) == 1)
    assert again["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] == "OOMKilled"
    held = playground.reason(path, "CrashLoopBackOff")
    assert held["status"]["phase"] == "Running"


def _restarts(pod: Object) -> int:
    return int(pod["status"]["containerStatuses"][0]["restartCount"]) if state(pod) else 0


def test_the_script_can_be_the_tag_of_a_custom_image(playground: Playground) -> None:
    path = playground.run(image="registry.example/acts:pull-4s_oom-0.5s")
    playground.reason(path, "ContainerCreating")
    playground.reason(path, "OOMKilled")


def test_a_deleted_pod_is_removed(playground: Playground) -> None:
    path = playground.run()
    playground.phase(path, "Running")
    playground.api.delete(path)
    playground.api.until_gone(path)


def test_a_program_that_hangs_keeps_its_pod_terminating(playground: Playground) -> None:
    path = playground.run("hang-8s")
    playground.phase(path, "Running")
    playground.api.delete(path)
    time.sleep(0.8)
    assert "running" in state(playground.api.get(path))
    playground.api.until_gone(path)


def test_a_deleted_pod_with_a_finalizer_keeps_its_terminated_state(playground: Playground) -> None:
    path = playground.run()
    playground.phase(path, "Running")
    playground.api.patch(path, {"metadata": {"finalizers": ["tests.example/metering"]}})
    playground.api.delete(path)
    ended = playground.api.until(path, lambda seen: "terminated" in state(seen))
    assert state(ended)["terminated"]["exitCode"] == 143
    assert ended["status"]["phase"] == "Failed"
    playground.api.patch(path, {"metadata": {"finalizers": None}})
    playground.api.until_gone(path)
