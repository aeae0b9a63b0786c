"""Every slice driver, from registration to a running pod."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet
from django.core.management import call_command

from broker.models import Allocation, Cluster, Gpu, Lease, Offering
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.labels import SELL_CPU
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.inventory import cluster_provisioners, gpu_catalogue
from ports import clock
from tenants.services.rls import tenant_scope
from tests.broker.domain.fleet import MODELS
from tests.cluster.installation import Installation
from tests.cluster.installed import close
from tests.controlplane import devices
from tests.controlplane.api import Object
from tests.controlplane.nodes import GpuNode, Nodes, PlainNode
from tests.controlplane.plane import ADMINISTRATORS, ControlPlane
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    create_tenant,
    held_allocations,
    reload_lease,
    state_path,
)

SEEN_WITHIN_S = 60
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


@dataclass(frozen=True)
class Way:
    """A slice driver with its node, offering and pod limits."""

    name: str
    machine: GpuNode
    profile: str
    limits: dict[str, str]
    isolation: str = "hardware"
    setup: dict[str, Any] = field(default_factory=dict)
    others: tuple[GpuNode, ...] = ()  # further nodes of the cluster
    published_gpus: int = 1

    def __str__(self) -> str:
        return self.name


HALVES = GpuNode(gpus=1, replicas=2, sharing="time-slicing")
SINGLE = GpuNode(gpus=1, cut=1, mig={"1g.10gb": 7}, strategy="single")
WAYS = [
    Way("claims", GpuNode(gpus=0), "1g.10gb", {}, setup={"driver": "dra"}),
    Way(
        "plain limits",
        GpuNode(gpus=0),
        "3g.40gb",
        {"nvidia.com/mig-3g.40gb": "1"},
        setup={"driver": "dra", "option": ["extended=yes"]},
    ),
    Way("halves", HALVES, "half", {"nvidia.com/gpu.shared": "1"}, "none"),
    Way(
        "halves called GPUs",
        GpuNode(gpus=1, replicas=2, sharing="mps", renamed=False),
        "half",
        {"nvidia.com/gpu": "1"},
        "soft",
    ),
    Way("slices called GPUs", SINGLE, "1g.10gb", {"nvidia.com/gpu": "1"}),
]
Join = Callable[[Way], "Joined"]


class Joined(Installation):
    """A cluster registered by the command and followed by its agent."""

    def __init__(self, plane: ControlPlane, nodes: Nodes, sim: Simulation, way: Way, file: Path) -> None:
        self.plane, self.sim, self.ended = plane, sim, Event()
        self.node = nodes.add(way.machine)
        self.others = [nodes.add(each) for each in way.others]
        if way.setup:
            devices.publish(plane.api, self.node, gpus=way.published_gpus)
        gpu_catalogue.load_gpu_models()
        file.write_text(yaml.safe_dump(plane.kubeconfig("admin", ADMINISTRATORS)))
        call_command(
            "kube_setup",
            kubeconfig=file,
            register=self.node,
            region=REGION,
            image="gpubroker:1",
            **way.setup,
        )
        self.cluster = Cluster.objects.get(name=self.node)
        self.agent = ClusterAgent(self.cluster)
        self.agent.start(lambda: not self.ended.is_set())
        end = clock.monotonic() + SEEN_WITHIN_S
        while not all(self.gpus(name) for name in (self.node, *self.others)):
            assert clock.monotonic() < end, "its GPUs never became inventory"
            sim.clock.at = datetime.now(UTC)
            self.agent.run_turn(0.05)
        gpu_catalogue.derive_offerings(now=sim.now)
        Offering.objects.update(state="published")
        self.home = create_tenant()

    def gpus(self, node: str) -> list[Gpu]:
        return list(Gpu.objects.filter(node__cluster=self.cluster, node__name=node))

    def request(self, profile: str) -> Lease:
        """Request a lease, and place it without asking the agent."""
        what = Offering.objects.get(gpu_model=MODEL, profile=profile, isolation="hardware", price_class="on_demand")
        lease = self.sim.request_lease(self.home, what, image="registry.example/acts:pull-0s")
        self.sim.clock.at = datetime.now(UTC)
        self.sim.run(0)
        return reload_lease(lease)

    def start_of(self, lease: Lease) -> int:
        """Return where a lease's slice begins in our rows."""
        (held,) = held_allocations(lease)
        return int(held.placement.lower)

    def device_of(self, lease: Lease) -> str:
        """Return the device that a lease's claim was given, or an empty text."""
        mine = [each for each in self.claims() if each["metadata"]["labels"][labels.LEASE] == lease.pk]
        claim = max(mine, key=lambda each: int(each["metadata"]["labels"][labels.GENERATION]), default={})
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        return str(results[0]["device"]) if results else ""

    def until_given(self, lease: Lease) -> str:
        """Wait until the scheduler gave a device to a lease, while the agent does not look."""
        end = clock.monotonic() + SEEN_WITHIN_S
        while not (device := self.device_of(lease)):
            assert clock.monotonic() < end, "no device was given to its claim"
            clock.sleep(0.05)
        return device

    def claims(self) -> list[Object]:
        """Return the claims of the project."""
        spaces = {pod["metadata"]["namespace"] for pod in self.ours("/api/v1/pods")}
        return [each for each in self.plane.api.items(CLAIMS) if each["metadata"]["namespace"] in spaces]


@pytest.fixture
def join(
    control_plane: ControlPlane, gpu_nodes: Nodes, sim: Simulation, settings: Any, tmp_path: Path
) -> Iterator[Join]:
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    made: list[Joined] = []

    def join(way: Way) -> Joined:
        made.append(Joined(control_plane, gpu_nodes, sim, way, tmp_path / "admin.yaml"))
        return made[-1]

    yield join
    cluster_provisioners._load_for_cluster.cache_clear()
    for each in made:
        each.ended.set()
        close(control_plane.api, f"gpubroker.dev/project={each.home.project.pk}")
        devices.withdraw(control_plane.api, each.node)
    for manifest in DraDriver(MODELS).cluster_objects():
        path = control_plane.api.path(manifest)
        if control_plane.api.find(path):
            control_plane.api.delete(path)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_offered_slice_can_be_leased(way: Way, join: Join) -> None:
    joined = join(way)
    what = Offering.objects.get(gpu_model=MODEL, profile=way.profile, isolation=way.isolation, price_class="on_demand")
    lease = joined.sim.request_lease(joined.home, what, image="registry.example/acts:pull-0s")
    lease = joined.until(lease, "active")
    (pod,) = joined.ours("/api/v1/pods")
    assert pod["spec"]["nodeName"] == joined.node
    limits = pod["spec"]["containers"][0]["resources"].get("limits", {})
    assert {name: count for name, count in limits.items() if name.startswith("nvidia.com/")} == way.limits
    if way.setup:
        (claim,) = joined.claims()
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert result["pool"] == joined.node
        assert "-mig-" in result["device"]
    joined.sim.release_lease(lease)
    assert joined.until(reload_lease(lease), "released").active_at is not None


def test_one_cluster_sells_nodes_of_three_drivers(join: Join) -> None:
    others = (GpuNode(gpus=1), PlainNode(labels={SELL_CPU: "true"}, amounts={"cpu": "16", "memory": "64Gi"}))
    joined = join(Way("automatic", GpuNode(gpus=0), "", {}, setup={"driver": "automatic"}, others=others))
    drivers = dict(zip((joined.node, *joined.others), ("dra", "device_plugin", "cpu"), strict=True))
    assert {name: joined.gpus(name)[0].driver for name in drivers} == drivers
    sold = Offering.objects.filter(price_class="on_demand", profile__in=("1g.10gb", "whole-gpu", "4vcpu"))
    wanted = list(sold)
    leases = [joined.sim.request_lease(joined.home, each, image="registry.example/acts:pull-0s") for each in wanted]
    for lease in leases:
        joined.until(lease, "active")
    pods = {pod["spec"]["nodeName"]: pod["spec"] for pod in joined.ours("/api/v1/pods")}
    assert set(pods) == set(drivers)
    resources = {name: pods[name]["containers"][0]["resources"] for name in pods}
    assert [bool(pods[name].get("resourceClaims")) for name in drivers] == [True, False, False]
    assert [resources[name]["limits"].get("nvidia.com/gpu", "") for name in drivers] == ["", "1", ""]
    assert resources[joined.others[1]]["limits"]["cpu"] == "4"


def test_placements_follow_the_scheduler_and_the_next_leases_fit(join: Join) -> None:
    """Where the small lease was booked at first, the last one would have had no place."""
    joined = join(WAYS[0])
    first = joined.request("1g.20gb")
    assert joined.start_of(first) == 6
    assert joined.until_given(first) == "gpu-0-mig-1g20gb-15-0"
    joined.until(first, "active")
    assert joined.start_of(first) == 0
    small = joined.until(joined.request("1g.10gb"), "active")
    joined.sim.release_lease(first)
    joined.until(first, "released")
    half = joined.until(joined.request("3g.40gb"), "active")
    last = joined.until(joined.request("2g.20gb"), "active")
    assert {joined.device_of(each): joined.start_of(each) for each in (small, half, last)} == {
        "gpu-0-mig-1g10gb-19-2": 2,
        "gpu-0-mig-3g40gb-9-4": 4,
        "gpu-0-mig-2g20gb-14-0": 0,
    }


def test_a_lease_that_lost_its_slice_to_another_starts_on_the_next_gpu(join: Join) -> None:
    joined = join(replace(WAYS[0], published_gpus=2))
    first = joined.request("3g.40gb")
    assert joined.start_of(first) == 4
    assert joined.until_given(first) == "gpu-0-mig-3g40gb-9-0"
    large = joined.request("4g.40gb")
    with tenant_scope(large.tenant_id):
        (booked,) = Allocation.objects.select_related("gpu").filter(lease=large)
    assert (booked.gpu.index, booked.placement.lower) == (0, 0), "the agent has not told where the first is"
    large = joined.until(large, "active", seconds=40)  # its pod would be unschedulable for longer
    assert joined.device_of(large) == "gpu-1-mig-4g40gb-5-0"
    assert state_path(large) == "requested queued provisioning queued provisioning active"
    joined.until(first, "active")
    assert joined.start_of(first) == 0
