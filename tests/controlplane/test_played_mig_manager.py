"""The label protocol of the simulated mig-manager in each of its modes."""

import time

import pytest

from tests.controlplane.api import Object
from tests.controlplane.mig_manager import SEEN, STATE
from tests.controlplane.nodes import GpuNode, Nodes

WHOLE, CUT = {"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 14}
LAYOUTS = {"all-disabled": WHOLE, "all-1g.10gb": CUT, "all-1g.10gb-again": CUT}


def node(nodes: Nodes, manners: str, takes: str = "300ms") -> str:
    return nodes.add(GpuNode(gpus=2, layouts=LAYOUTS, manners=manners, takes=takes))


def until(nodes: Nodes, name: str, state: str) -> Object:
    return nodes.api.until(f"/api/v1/nodes/{name}", lambda seen: seen["metadata"]["labels"].get(STATE) == state)


def given(node: Object) -> dict[str, str]:
    return {name: n for name, n in node["status"]["allocatable"].items() if name.startswith("nvidia.com/")}


def noticed(node: Object) -> str:
    return str(node["metadata"]["annotations"].get(SEEN))


def test_a_working_manager_pauses_clients_and_reports_success(gpu_nodes: Nodes) -> None:
    name = node(gpu_nodes, "obeys", "4s")
    gpu_nodes.lay_out(name, "all-1g.10gb")
    until(gpu_nodes, name, "pending")
    at_work = gpu_nodes.api.until(f"/api/v1/nodes/{name}", lambda seen: given(seen) == {"nvidia.com/gpu": "0"})
    assert at_work["metadata"]["labels"]["nvidia.com/gpu.deploy.device-plugin"] == "paused-for-mig-change"
    done = until(gpu_nodes, name, "success")
    assert given(done) == {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "14"}
    assert done["metadata"]["labels"]["nvidia.com/gpu.deploy.device-plugin"] == "true"
    gpu_nodes.lay_out(name, "all-disabled")
    gpu_nodes.api.until(f"/api/v1/nodes/{name}", lambda seen: given(seen)["nvidia.com/gpu"] == "2")
    assert given(until(gpu_nodes, name, "success"))["nvidia.com/mig-1g.10gb"] == "0"


def test_a_slow_manager_succeeds_late(gpu_nodes: Nodes) -> None:
    name, began = node(gpu_nodes, "obeys", "4s"), time.monotonic()
    gpu_nodes.lay_out(name, "all-1g.10gb")
    until(gpu_nodes, name, "pending")
    until(gpu_nodes, name, "success")
    assert time.monotonic() - began >= 4


@pytest.mark.parametrize(("manners", "layout"), [("fails", "all-1g.10gb"), ("obeys", "no-such-layout")])
def test_an_impossible_layout_is_reported_as_failed(gpu_nodes: Nodes, manners: str, layout: str) -> None:
    name = node(gpu_nodes, manners)
    gpu_nodes.lay_out(name, layout)
    until(gpu_nodes, name, "failed")


def test_a_manager_that_hung_once_recovers_by_another_value_and_back(gpu_nodes: Nodes) -> None:
    name = node(gpu_nodes, "wedges-once")
    gpu_nodes.lay_out(name, "all-1g.10gb")
    until(gpu_nodes, name, "pending")
    time.sleep(1)
    gpu_nodes.lay_out(name, "all-1g.10gb")  # the same value is no event
    time.sleep(0.5)
    assert gpu_nodes.state_of_layout(name) == "pending"
    gpu_nodes.lay_out(name, "all-1g.10gb-again")
    gpu_nodes.api.until(f"/api/v1/nodes/{name}", lambda seen: noticed(seen) == "all-1g.10gb-again")
    gpu_nodes.lay_out(name, "all-1g.10gb")
    assert given(until(gpu_nodes, name, "success"))["nvidia.com/mig-1g.10gb"] == "14"


def test_a_hanging_manager_stays_pending_for_every_layout(gpu_nodes: Nodes) -> None:
    name = node(gpu_nodes, "wedges")
    for layout in ("all-1g.10gb", "all-1g.10gb-again", "all-disabled"):
        gpu_nodes.lay_out(name, layout)
        time.sleep(0.5)
    assert gpu_nodes.state_of_layout(name) == "pending"
