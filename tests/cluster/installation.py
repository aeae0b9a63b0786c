"""A registered cluster with one node and a tenant."""

from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from broker.models import Lease, Offering
from broker.provisioners.kubernetes.client.kinds import NODE
from broker.provisioners.kubernetes.client.kubeconfig import parse_kubeconfig
from broker.provisioners.kubernetes.client.objects import ClusterNode, decode
from broker.provisioners.kubernetes.client.transport import Transport
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import gpu_catalogue
from ports import clock
from tests.cluster.installed import install
from tests.cluster.stages import PLUGIN
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane
from tests.simulation import MODEL, OPERATOR, REGION, Simulation, create_tenant, reload_lease

BEAT_S = 5.0


class Installation:
    """A registered cluster with offerings on one node, and a tenant."""

    agent: ClusterAgent | None = None  # who follows the cluster; what it says is believed only while it is heard
    skew = timedelta()  # how far the clock of the product is played ahead
    _beat_at = 0.0

    def __init__(self, plane: ControlPlane, nodes: Nodes, sim: Simulation) -> None:
        self.plane, self.sim = plane, sim
        install(plane.api, PLUGIN)
        self.node = nodes.add(GpuNode(gpus=2, cut=1, mig={"1g.10gb": 7}))
        gpu_catalogue.load_gpu_models()
        self.kubeconfig = parse_kubeconfig(yaml.safe_dump(plane.kubeconfig("admin", "system:masters")))
        self.cluster = cluster_registration.register_cluster(
            name=self.node,
            region=REGION,
            kubeconfig=self.kubeconfig,
            driver="device_plugin",
            actor=OPERATOR,
            now=sim.now,
        )
        self.take_inventory()
        gpu_catalogue.derive_offerings(now=sim.now)
        Offering.objects.update(state="published")
        self.home = create_tenant()

    def take_inventory(self) -> list[str]:
        transport = Transport(lambda: self.kubeconfig)
        items, _ = transport.within().list_all(NODE, fields=f"metadata.name={self.node}")
        found = PLUGIN.inventory([decode(each, ClusterNode) for each in items], [])
        return cluster_registration.update_inventory(self.cluster, found, now=self.sim.now)

    def until(self, lease: Lease, state: str, *, seconds: int = 90) -> Lease:
        """Run the workers in real time until a lease is in a state."""
        end = clock.monotonic() + seconds
        while clock.monotonic() < end:
            self.pass_on()
            lease = reload_lease(lease)
            if lease.state == state:
                return lease
        raise AssertionError(f"{lease.state}, not {state}: {lease.progress} {lease.pending_reason}")

    def pass_on(self) -> None:
        """Run workers, sweeps and agent for a moment of real time.

        No less: where an agent follows, workers leave it to that to tell of what comes, and to beat should it not.
        """
        if self.agent:
            self.agent.run_turn(0.05)
        else:
            clock.sleep(0.05)
        self.sim.clock.at = datetime.now(UTC) + self.skew
        self.sim.run(0)
        if clock.monotonic() >= self._beat_at:
            self._beat_at = clock.monotonic() + BEAT_S
            self.sim.sweep()

    def ours(self, kind: str) -> list[dict[str, Any]]:
        mine = f"gpubroker.dev/project={self.home.project.pk}"
        return self.plane.api.items(kind, labelSelector=mine)


def offering(profile: str) -> Offering:
    return Offering.objects.get(gpu_model=MODEL, profile=profile, price_class="on_demand")
