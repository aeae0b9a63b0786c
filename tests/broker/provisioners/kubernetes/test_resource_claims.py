"""Devices of resource claims, compared with the sold slices."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from broker.domain.lifecycle.states import Isolation
from broker.models import Cluster, ClusterWatch
from broker.provisioners.base import Observation, ObservedState
from broker.provisioners.kubernetes import labels, names, provisioner
from broker.provisioners.kubernetes.client.objects import ResourceClaim, ResourceSlice
from broker.provisioners.kubernetes.drivers.dra import DraDriver, misallocated_device
from broker.provisioners.kubernetes.drivers.dra_devices import DRA_DRIVER_NAME
from broker.provisioners.kubernetes.render.spec import SliceSpec
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from tests.broker.domain.fleet import MODELS
from tests.broker.provisioners.kubernetes.lease_specs import DRIVERS, GPU_UUID, LEASE, WHOLE
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, StartServer, error_status
from tests.broker.provisioners.kubernetes.test_observation_cache import NOTHING, READY, Scene, a_pod, provision_spec
from tests.simulation import NOW

Body = dict[str, Any]


def device(name: str, *, gpu: str = "", of: str = "", units: tuple[int, ...] = ()) -> Body:
    kind = {"uuid": {"string": gpu}} if gpu else {"parentUUID": {"string": of}}
    return {"name": name, "attributes": kind, "capacity": {f"memorySlice{n}": {"value": "1"} for n in units}}


def published(*devices: Body, node: str = "gpu-node-1", driver: str = DRA_DRIVER_NAME) -> Body:
    spec = {"driver": driver, "nodeName": node, "devices": list(devices)}
    return {"metadata": {"name": f"s-{node}"}, "spec": spec}


def claim(*given: str, pool: str = "gpu-node-1", driver: str = DRA_DRIVER_NAME, **meta: Any) -> Body:
    """Return a claim as its cluster shows it, with the devices that it was given."""
    results = [{"request": "slice-0", "driver": driver, "pool": pool, "device": each} for each in given]
    status = {"allocation": {"devices": {"results": results}}} if given else {}
    return {"metadata": {"name": "c", **meta}, "spec": {"devices": {}}, "status": status}


NODE = published(
    device("own", of=GPU_UUID, units=(5,)),
    device("beside", of=GPU_UUID, units=(6,)),
    device("elsewhere", of="GPU-other", units=(5,)),
    device("gpu", gpu=GPU_UUID),
    device("other-gpu", gpu="GPU-other"),
)


def unsold_device(body: Body, *, lease: Any = LEASE) -> str:
    slices = [msgspec.convert(NODE, ResourceSlice), msgspec.convert(published(driver="x"), ResourceSlice)]
    return misallocated_device(lease, 0, msgspec.convert(body, ResourceClaim), slices)


def test_only_a_claimed_device_that_was_not_sold_is_reported() -> None:
    assert unsold_device(claim("own")) == ""
    assert unsold_device(claim()) == ""
    whole = replace(LEASE, offering=WHOLE, slices=(SliceSpec("gpu-node-1", GPU_UUID, "whole-gpu", 0, 8, 8, 80),))
    assert whole.offering.isolation is Isolation.DEVICE
    assert unsold_device(claim("gpu"), lease=whole) == ""
    assert unsold_device(claim("other-gpu"), lease=whole) == "other-gpu of gpu-node-1"


@pytest.mark.parametrize("given", ["beside", "elsewhere"])
def test_an_unsold_device_in_a_claim_is_named(given: str) -> None:
    assert unsold_device(claim("own", given)) == f"{given} of gpu-node-1"


def test_a_claim_of_an_unpublished_device_is_not_reported() -> None:
    for each in (claim("unheard-of"), claim("beside", pool="elsewhere"), claim("beside", driver="nic")):
        assert unsold_device(each) == ""


def test_only_the_dra_driver_without_extended_resources_uses_resource_claims() -> None:
    assert {name: driver.uses_resource_claims for name, driver in DRIVERS.items()} == {
        "device_plugin": False,
        "dra": True,
        "dra_extended": False,
        "hami": False,
    }


class Claiming(Scene):
    """A provisioner where leases hold their devices by claims."""

    def __init__(self, cluster: Cluster, *script: ScriptedAnswer, serve: StartServer) -> None:
        super().__init__(cluster, serve(*script))
        self.provisioner._connection = replace(self.provisioner._cluster_connection, driver=DraDriver(MODELS))

    def follows(self) -> None:
        ClusterWatch.objects.create(
            cluster=self.cluster, kind="ResourceClaim", version=5, synced_at=NOW, last_event_at=NOW
        )

    def claim(self, body: Body, **more: Any) -> None:
        self.row("ResourceClaim", "c", {**body, **more}, space=self.space, mine=provision_spec().name)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (claim("own"), False),
        (claim(), True),
        (None, True),
        ({**claim("own"), "strange": "beside of n01"}, True),
    ],
)
def test_a_running_lease_is_ready_while_its_claim_holds_the_sold_device(
    cluster: Cluster, serve: StartServer, held: Body | None, wanted: bool
) -> None:
    scene = Claiming(cluster, error_status(404, "not found"), NOTHING, serve=serve)
    scene.runs()
    scene.follows()
    if held:
        scene.claim(held)
    seen = scene.provisioner.observe(provision_spec(), now=NOW)
    assert (seen.seen, bool(scene.verbs)) == ((ObservedState.GONE, True) if wanted else (ObservedState.READY, False))


def test_a_running_pod_is_ready_without_a_claim_watch(cluster: Cluster, serve: StartServer) -> None:
    scene = Claiming(cluster, error_status(404, "not found"), NOTHING, serve=serve)
    scene.runs()
    assert scene.provisioner.observe(provision_spec(), now=NOW).seen is ObservedState.READY
    assert scene.verbs == []


def test_a_pending_pod_needs_no_claimed_device(cluster: Cluster, serve: StartServer) -> None:
    scene = Claiming(cluster, error_status(404, "not found"), NOTHING, serve=serve)
    scene.runs()
    scene.follows()
    scene.claim(claim())
    scene.pod({"phase": "Pending"})
    assert scene.provisioner.observe(provision_spec(), now=NOW).seen is ObservedState.PENDING
    assert scene.verbs == []
    assert scene.memory.names(now=NOW) == [provision_spec().name]


def test_a_claim_without_a_pod_is_not_an_existing_lease(cluster: Cluster, serve: StartServer) -> None:
    scene = Claiming(cluster, error_status(404, "not found"), NOTHING, serve=serve)
    scene.beats()
    scene.claim(claim("own"))
    assert scene.memory.names(now=NOW) == []


def checked_at(
    cluster: Cluster, serve: StartServer, *answers: ScriptedAnswer, pod: Body, ends: bool = False
) -> tuple[Observation, list[str]]:
    """Ask the cluster for a lease; return the requests beyond its anchor."""
    spec = lease_spec(provision_spec(), "ins_1")
    marks = {**labels.lease_labels(spec), labels.ROLE: labels.ANCHOR_ROLE}
    paid = {labels.PAID_UNTIL: "2026-11-21T10:00:00Z"}
    meta = {"name": provision_spec().name, "uid": "u-anchor", "labels": marks, "annotations": paid}
    anchor = {"metadata": {**meta, "creationTimestamp": "2026-11-21T08:00:00Z"}}
    node = {"metadata": {"name": "n01"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    pods = {"metadata": {"resourceVersion": "5"}, "items": [pod]}
    there = (ScriptedAnswer(body=anchor), ScriptedAnswer(body=pods))
    ended = a_pod({"phase": "Succeeded"}, namespace="gt-1")
    ended["spec"]["restartPolicy"] = "Never"
    after = {**pods, "items": [ended if ends else pod]}
    script = (*there, ScriptedAnswer(body=node), *answers, ScriptedAnswer(body=anchor), ScriptedAnswer(body=after))
    scene = Claiming(cluster, *script, serve=serve)
    seen = scene.provisioner.observe(provision_spec(), now=NOW)
    return seen, [f"{each.method} {each.path.split('?')[0].rsplit('/', 1)[-1]}" for each in scene.wire.requests[3:]]


def ours(*given: str) -> ScriptedAnswer:
    return ScriptedAnswer(
        body=claim(*given, pool="n01", labels=labels.lease_labels(lease_spec(provision_spec(), "ins_1")))
    )


def of_node(*devices: Body) -> ScriptedAnswer:
    return ScriptedAnswer(body={"metadata": {"resourceVersion": "5"}, "items": [published(*devices, node="n01")]})


CLAIM_NAME = names.resource_claim_name(provision_spec().lease_id, 1, 0)
RUNS = a_pod(READY, namespace="gt-1")
WAITS = a_pod({"phase": "Pending"}, namespace="gt-1")


def test_a_correct_device_assignment_needs_two_reads(cluster: Cluster, serve: StartServer) -> None:
    seen, wanted = checked_at(cluster, serve, ours("gpu"), of_node(device("gpu", gpu="GPU-1")), pod=RUNS)
    assert seen.seen is ObservedState.READY
    assert wanted == [f"GET {CLAIM_NAME}", "GET resourceslices"]


def test_a_lease_with_an_unsold_device_is_lost(cluster: Cluster, serve: StartServer) -> None:
    for pod in (RUNS, WAITS):
        seen, _ = checked_at(cluster, serve, ours("gpu"), of_node(device("gpu", gpu="GPU-2")), pod=pod)
        assert (seen.seen, seen.text) == (
            ObservedState.LOST,
            "its resource claim got gpu of n01, where it was not placed",
        )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error_status(404, "not found"), "its resource claim was deleted, and with it its devices"),
        (ScriptedAnswer(body=claim("gpu", pool="n01")), "its resource claim was deleted, and with it its devices"),
        (ours(), "its devices were removed from its resource claim"),
    ],
)
def test_a_running_lease_without_its_claimed_devices_is_lost(
    cluster: Cluster, serve: StartServer, answer: ScriptedAnswer, words: str
) -> None:
    seen, _ = checked_at(cluster, serve, answer, pod=RUNS)
    assert (seen.seen, seen.text) == (ObservedState.LOST, words)


def test_a_program_that_ends_during_the_claim_read_is_ended(cluster: Cluster, serve: StartServer) -> None:
    seen, _ = checked_at(cluster, serve, ours(), pod=RUNS, ends=True)
    assert seen.seen is ObservedState.ENDED


def test_a_missing_claim_of_a_pending_pod_is_created_again(
    cluster: Cluster, serve: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    repaired: list[str] = []
    monkeypatch.setattr(provisioner, "repair_children", lambda api, driver, spec, found: repaired.append(spec.lease_id))
    seen, wanted = checked_at(cluster, serve, error_status(404, "not found"), pod=WAITS)
    assert (seen.seen, wanted, repaired) == (ObservedState.PENDING, [f"GET {CLAIM_NAME}"], [provision_spec().lease_id])
    seen, _ = checked_at(cluster, serve, ours(), pod=WAITS)
    assert (seen.seen, len(repaired)) == (ObservedState.PENDING, 1)
