"""Small provision specs for rendering tests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU
from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.domain.workloads.templates import Workload
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.drivers.hami import HamiDriver
from broker.provisioners.kubernetes.render.spec import (
    LeaseSpec,
    OfferingSpec,
    ProjectSpec,
    RouteSpec,
    SliceSpec,
    VolumeSpec,
)
from tests.broker.domain.fleet import H100

PLACED = datetime(2026, 7, 1, 12, tzinfo=UTC)
GPU_UUID = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77"
PROJECT = ProjectSpec(
    "ten_01m7yacme00000000000000000",
    "prj_01m7yvision000000000000000",
    "acme",
)
EIGHTH, QUARTER = DEFAULT_OF_A_GPU.share(1, 8), DEFAULT_OF_A_GPU.share(1, 4)
MIG = OfferingSpec("H100-80GB", "1g.10gb", Isolation.HARDWARE, PriceClass.ON_DEMAND, EIGHTH)
WHOLE = OfferingSpec("H100-80GB", "whole-gpu", Isolation.DEVICE, PriceClass.ON_DEMAND)
SHARE = OfferingSpec("H100-80GB", "quarter", Isolation.SOFT, PriceClass.SPOT, QUARTER)
ONE = SliceSpec("gpu-node-1", GPU_UUID, "1g.10gb", 5, 1, 8, 80)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtMiVqXvOjvXcR8wHYL4fWGfIuB9pYvQKYsEY6nFTZ9 ada@example"
ROUTE = RouteSpec("ingress", "public", "leases.example")

LEASE = LeaseSpec(
    lease_id="lse_01m7yexample00000000000000",
    generation=1,
    project=PROJECT,
    offering=MIG,
    workload=Workload("ssh", ssh_keys=(KEY,)),
    slices=(ONE,),
    placed_at=PLACED,
    paid_until=PLACED + timedelta(hours=2),
    access_token="sesame",
    route=ROUTE,
)
GANG = replace(
    LEASE,
    offering=WHOLE,
    workload=Workload("batch", command="torchrun train.py --lr 1e-4 && echo $HOME"),
    slices=tuple(
        SliceSpec(f"gpu-node-{node}", f"GPU-{node}{gpu}", "whole-gpu", 0, 8, 8, 80) for node in (1, 2) for gpu in (0, 1)
    ),
)
VOLUME = VolumeSpec("vol_01m7yhome00000000000000000", 100, "/home/gpubroker")
EVERY_TEMPLATE = {
    "ssh": LEASE,
    "jupyter": replace(LEASE, workload=Workload("jupyter", env=(("HF_TOKEN", "a$(b)c"),))),
    "vscode": replace(LEASE, workload=Workload("vscode"), route=replace(ROUTE, kind="gateway")),
    "vllm": replace(LEASE, workload=Workload("vllm", command="--model 'Qwen/Qwen3 8B'")),
    "batch": replace(LEASE, workload=Workload("batch", command="python train.py")),
    "own": replace(LEASE, workload=Workload("own", image="ghcr.io/acme/solver@sha256:" + "0" * 64)),
    "volume": replace(LEASE, volumes=(VOLUME,)),
    "gang": GANG,
}
FLEET = (H100,)
PLUGIN = DevicePluginDriver(FLEET)
DRIVERS: dict[str, SliceDriver] = {
    "device_plugin": PLUGIN,
    "dra": DraDriver(FLEET),
    "dra_extended": DraDriver(FLEET, extended=True),
    "hami": HamiDriver(FLEET),
}


def kinds(objects: list[dict[str, Any]]) -> list[str]:
    return [each["kind"] for each in objects]


def of_kind(objects: list[dict[str, Any]], *wanted: str) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] in wanted]


def pods(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every pod template there is among objects."""
    found = of_kind(objects, "StatefulSet", "Deployment", "Job")
    found += [each["spec"]["jobTemplate"] for each in of_kind(objects, "CronJob")]
    return [each["spec"]["template"] for each in found]
