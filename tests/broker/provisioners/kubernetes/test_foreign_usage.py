"""What pods and claims outside the broker hold, as a watch reports them."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from broker.provisioners.kubernetes.agent import foreign_usage
from broker.provisioners.kubernetes.agent.foreign_usage import ForeignUsage
from broker.provisioners.kubernetes.client.kinds import POD, RESOURCE_CLAIM, Kind
from broker.provisioners.kubernetes.client.objects import Raw
from broker.provisioners.kubernetes.client.pod_requests import PodRequestsSpec, pod_requests
from broker.provisioners.kubernetes.render.image_prepulls import prepull_daemon_set

OURS = "ins_1"


def raw(thing: dict[str, Any]) -> Raw:
    return Raw(msgspec.json.encode(thing))


def pod(name: str = "train-0", phase: str = "Running", node: str = "n1", **meta: Any) -> Raw:
    wants = {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "2"}
    return raw(
        {
            "metadata": {"name": name, "namespace": "team-a", **meta},
            "spec": {"nodeName": node, "containers": [{"resources": {"limits": wants}}]},
            "status": {"phase": phase},
        }
    )


def claim(*devices: str, name: str = "train-gpu", **more: Any) -> Raw:
    results = [{"driver": "gpu.nvidia.com", "pool": "n1", "device": each, **more} for each in devices]
    status = {"allocation": {"devices": {"results": results}}} if devices else {}
    return raw({"metadata": {"name": name, "namespace": "team-a"}, "status": status})


def usage_after(*items: Raw, kind: Kind = POD) -> ForeignUsage:
    usage = ForeignUsage(OURS)
    usage.begun(kind)
    usage.paged(kind, list(items), 5)
    usage.listed(kind, 5)
    return usage


def test_requests_of_running_pods_are_summed_by_node() -> None:
    found = usage_after(pod("a"), pod("b"), pod("c", node="n2"), pod("d", node="")).by_node()
    assert {node: dict(usage.amounts) for node, usage in found.items()} == {
        "n1": {"cpu": Fraction(1), "memory": Fraction(4 * 2**30), "nvidia.com/gpu": Fraction(4)},
        "n2": {"cpu": Fraction(1, 2), "memory": Fraction(2 * 2**30), "nvidia.com/gpu": Fraction(2)},
    }


def test_an_ended_or_deleted_pod_holds_nothing() -> None:
    usage = usage_after(pod("a"), pod("b"))
    usage.changed(POD, "MODIFIED", pod("a", phase="Succeeded"), 6)
    usage.changed(POD, "DELETED", pod("b"), 7)
    assert usage.by_node() == {}


def test_a_pod_missing_from_a_new_list_holds_nothing() -> None:
    usage = usage_after(pod("a"), pod("b"))
    usage.begun(POD)
    usage.paged(POD, [pod("b")], 9)
    usage.listed(POD, 9)
    assert usage.by_node()["n1"].amounts["nvidia.com/gpu"] == 2


def test_a_pod_of_a_lease_from_before_the_installation_label_is_ours() -> None:
    assert usage_after(pod(labels={"gpubroker.dev/lease": "lse_1"})).by_node() == {}
    other = {"gpubroker.dev/lease": "lse_1", "gpubroker.dev/installation": "ins_2"}
    assert usage_after(pod(labels=other)).by_node()["n1"].amounts["nvidia.com/gpu"] == 2


def test_devices_of_allocated_claims_name_their_holder() -> None:
    usage = usage_after(claim("gpu-0", "gpu-1-mig-1g10gb-19-0"), kind=RESOURCE_CLAIM)
    assert usage.by_node()["n1"].devices == {
        "gpu-0": "team-a/train-gpu",
        "gpu-1-mig-1g10gb-19-0": "team-a/train-gpu",
    }
    usage.changed(RESOURCE_CLAIM, "MODIFIED", claim(), 8)
    assert usage.by_node() == {}


def test_extended_resources_that_a_claim_provides_are_counted_by_the_claim_only() -> None:
    mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "container-0-request-0"}
    body = msgspec.json.decode(pod())
    body["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "x", "requestMappings": [mapping]}
    assert set(usage_after(raw(body)).by_node()["n1"].amounts) == {"cpu", "memory"}


def test_claims_that_monitor_devices_or_are_of_other_drivers_hold_no_gpu() -> None:
    monitors, network = claim("gpu-0", adminAccess=True), claim("gpu-0", name="nic", driver="gpu.intel.com")
    assert usage_after(monitors, network, kind=RESOURCE_CLAIM).by_node() == {}


def test_hami_pods_name_their_gpus() -> None:
    annotations = {"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,8000,30:GPU-b,NVIDIA,8000,30:;"}
    found = usage_after(pod(annotations=annotations)).by_node()
    assert set(found["n1"].devices) == {"GPU-a", "GPU-b"}


def test_changes_are_reported_once_and_only_if_usage_changed() -> None:
    usage = usage_after(pod())
    assert (usage.take_change(), usage.take_change()) == (True, False)
    usage.changed(POD, "MODIFIED", pod(resourceVersion="9"), 9)
    usage.heard(POD, 10)
    assert not usage.take_change()
    usage.changed(POD, "DELETED", pod(), 11)
    assert usage.take_change()


def test_usage_is_incomplete_until_all_expected_kinds_are_listed() -> None:
    usage = ForeignUsage(OURS)
    assert usage.is_complete
    usage.expect([POD, RESOURCE_CLAIM])
    usage.begun(POD)
    usage.listed(POD, 1)
    assert not usage.is_complete
    usage.begun(RESOURCE_CLAIM)
    usage.listed(RESOURCE_CLAIM, 1)
    assert usage.is_complete


def container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def test_a_pod_holds_what_the_scheduler_counts_for_it() -> None:
    """The largest init container counts, or all containers; sidecars and overhead are added."""

    def cpus(**spec: Any) -> Fraction:
        return pod_requests(msgspec.convert(spec, PodRequestsSpec))["cpu"]

    two = [container("1"), container("500m")]
    assert cpus(containers=two) == Fraction(3, 2)
    assert cpus(containers=two, initContainers=[container("4")]) == 4
    assert cpus(containers=two, initContainers=[container("1", restartPolicy="Always")]) == Fraction(5, 2)
    assert cpus(containers=two, overhead={"cpu": "250m"}) == Fraction(7, 4)
    sidecar = container("4", restartPolicy="Always")
    assert cpus(containers=two, initContainers=[sidecar, container("5")]) == 9
    assert cpus(containers=two, initContainers=[container("5"), sidecar]) == Fraction(11, 2)
    assert cpus(containers=two, initContainers=[container("7"), sidecar]) == 7


def test_requests_of_a_whole_pod_replace_those_of_its_containers() -> None:
    """Only CPU, memory and huge pages can be requested so; overhead is added (KEP-2837)."""
    spec = {
        "resources": {"requests": {"cpu": "60", "hugepages-2Mi": "4Mi"}, "limits": {"memory": "100Gi"}},
        "containers": [{"resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}}}, {}],
        "overhead": {"cpu": "250m"},
    }
    assert pod_requests(msgspec.convert(spec, PodRequestsSpec)) == {
        "cpu": Fraction(241, 4),
        "memory": 100 * 2**30,
        "hugepages-2Mi": 4 * 2**20,
        "nvidia.com/gpu": 2,
    }


def test_the_selector_excludes_this_installation_only() -> None:
    assert ForeignUsage(OURS).selector == "gpubroker.dev/installation!=ins_1"


def owned(name: str, kind: str = "DaemonSet", owner: str = "cilium", cpu: str = "500m") -> Raw:
    """Return a pod that a controller of this kind keeps on its node."""
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}]
    return raw(
        {
            "metadata": {"name": name, "namespace": "kube-system", "ownerReferences": owners},
            "spec": {"nodeName": "n1", "containers": [container(cpu)]},
            "status": {"phase": "Running"},
        }
    )


def daemon_cpus(usage: ForeignUsage) -> Fraction:
    return Fraction(usage.by_node()["n1"].daemon_sets.get("cpu", 0))


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Stop the clock, except for the seconds added here."""
    passed = [5000.0]
    monkeypatch.setattr(foreign_usage, "clock", SimpleNamespace(monotonic=lambda: sum(passed)))
    return passed


def test_pods_of_daemon_sets_and_static_pods_are_told_from_others() -> None:
    static = owned("kube-proxy-n1", kind="Node", owner="n1", cpu="100m")
    ordinary = [pod(), owned("web-1", kind="ReplicaSet", owner="web")]
    found = usage_after(owned("cilium-x"), owned("exporter-x", owner="exporter"), static, *ordinary).by_node()["n1"]
    assert found.daemon_sets == {"cpu": Fraction(11, 10)}
    assert found.ordinary["cpu"] == 1
    assert found.amounts["cpu"] == Fraction(21, 10)


def test_a_daemon_set_counts_while_its_pod_is_replaced(moments: list[float]) -> None:
    usage = usage_after(owned("cilium-old", cpu="2"))
    usage.changed(POD, "DELETED", owned("cilium-old", cpu="2"), 6)
    assert daemon_cpus(usage) == 2
    usage.changed(POD, "ADDED", owned("cilium-new", cpu="2"), 7)
    assert daemon_cpus(usage) == 2


def test_a_removed_daemon_set_stops_counting_after_ten_minutes(moments: list[float]) -> None:
    usage = usage_after(owned("cilium-old", cpu="2"))
    usage.changed(POD, "DELETED", owned("cilium-old", cpu="2"), 6)
    moments.append(599.0)
    assert daemon_cpus(usage) == 2
    moments.append(2.0)
    assert usage.by_node() == {}


def test_a_daemon_set_counts_once_while_its_old_and_new_pods_run(moments: list[float]) -> None:
    assert daemon_cpus(usage_after(owned("cilium-old", cpu="1"), owned("cilium-new", cpu="3"))) == 3


def test_pods_that_keep_images_for_us_hold_nothing() -> None:
    template = prepull_daemon_set("alpine:3")["spec"]["template"]
    assert not any(pod_requests(msgspec.convert(template["spec"], PodRequestsSpec)).values())
