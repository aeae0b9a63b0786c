"""Pods of others in a shared cluster keep their GPUs, which are not sold."""

from collections.abc import Iterator

import pytest

from broker.services.placement import available_capacity
from tests.cluster.installation import Installation, offering
from tests.cluster.running_agent import RunningAgent
from tests.controlplane.api import Object
from tests.controlplane.manifests import pod
from tests.simulation import reload_lease

NAMESPACE = "default"


@pytest.fixture
def training_pod(installed: Installation) -> Iterator[str]:
    """Run a pod of others, of priority zero, that holds the node's GPU."""
    name = f"training-{installed.node}"
    limits = {"nvidia.com/gpu": "1", "cpu": "4", "memory": "8Gi"}
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    made = pod(name, NAMESPACE, node=installed.node, script="pull-1s", limits=limits)
    made["spec"]["tolerations"] = tolerations
    installed.plane.api.create(made)
    yield name
    remove(installed, name)


def path(name: str) -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"


def remove(installed: Installation, name: str) -> None:
    if read(installed, name):
        installed.plane.api.delete(path(name), gracePeriodSeconds="0")


def read(installed: Installation, name: str) -> Object | None:
    found = installed.plane.api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", fieldSelector=f"metadata.name={name}")
    return found[0] if found else None


def phase(installed: Installation, name: str) -> str:
    found = read(installed, name)
    return str(found["status"].get("phase", "")) if found and "deletionTimestamp" not in found["metadata"] else "gone"


def free_gpus() -> int:
    wanted = offering("whole-gpu")
    return available_capacity.count_available([wanted])[wanted.pk]


def test_a_lease_waits_for_a_gpu_that_a_pod_of_others_holds(watching: RunningAgent, training_pod: str) -> None:
    installed = watching.installed
    watching.run_loop_until(lambda: phase(installed, training_pod) == "Running" and free_gpus() == 0)
    lease = installed.sim.request_lease(installed.home, offering("whole-gpu"), image="registry.example/acts:pull-1s")
    installed.sim.run()
    assert reload_lease(lease).state == "queued"
    assert phase(installed, training_pod) == "Running"
    remove(installed, training_pod)
    installed.until(lease, "active")


@pytest.mark.parametrize("held", [{"cpu": "124"}, {"memory": "1000Gi"}], ids=str)
def test_a_gpu_whose_cpu_or_memory_others_hold_is_not_sold(watching: RunningAgent, held: dict[str, str]) -> None:
    installed = watching.installed
    name = f"{next(iter(held))}-{installed.node}"
    made = pod(name, NAMESPACE, node=installed.node, script="pull-1s", limits=held)
    made["spec"]["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    installed.plane.api.create(made)
    watching.run_loop_until(lambda: phase(installed, name) == "Running" and free_gpus() == 0)
    lease = installed.sim.request_lease(installed.home, offering("whole-gpu"), image="registry.example/acts:pull-1s")
    installed.sim.run()
    assert reload_lease(lease).state == "queued"
    remove(installed, name)
    installed.until(lease, "active")


def test_the_scheduler_never_preempts_a_pod_of_others_for_a_lease(installed: Installation, training_pod: str) -> None:
    """Without an agent the broker places the lease on the GPU of the pod."""
    for _ in range(200):
        installed.pass_on()
        if phase(installed, training_pod) == "Running":
            break
    lease = installed.sim.request_lease(installed.home, offering("whole-gpu"), image="registry.example/acts:pull-1s")
    for _ in range(100):
        installed.pass_on()
        assert phase(installed, training_pod) == "Running"
    assert reload_lease(lease).state == "provisioning"
    (waiting,) = installed.ours("/api/v1/pods")
    conditions = {each["type"]: each for each in waiting["status"]["conditions"]}
    assert "Insufficient nvidia.com/gpu" in conditions["PodScheduled"]["message"]
