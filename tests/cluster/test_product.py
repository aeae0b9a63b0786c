"""The product itself on a real control plane: a cluster joins, a lease is asked for, runs, and leaves nothing."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet

from broker.models import ClusterCredential, Gpu, Lease, Offering
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.kinds import NODE
from broker.provisioners.kubernetes.kubeconfig import parse
from broker.provisioners.kubernetes.objects import Node, read
from broker.provisioners.kubernetes.transport import Transport
from broker.services import catalogue, clusters, joining
from broker.services.following import Agent
from ports import clock, doorbell
from tenants.models.audit import AuditEvent
from tenants.services.walls import as_staff
from tests.cluster.installed import close, install
from tests.cluster.stages import PLUGIN
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane
from tests.world import MODEL, OPERATOR, REGION, Life, fresh, held, home, path

Until = Callable[[Lease, str], Lease]
BEAT_S = 5.0


class Installation:
    """A joined cluster with one node, whose cards are for sale, and a tenant."""

    agent: Agent | None = None  # who follows the cluster; what it says is believed only while it is heard
    skew = timedelta()  # how far the clock of the product is played ahead
    _beat_at = 0.0

    def __init__(self, plane: ControlPlane, nodes: Nodes, life: Life) -> None:
        self.plane, self.life = plane, life
        install(plane.api, PLUGIN)
        self.node = nodes.add(GpuNode(cards=2, cut=1, mig={"1g.10gb": 7}))
        catalogue.load_gpu_models()
        self.kubeconfig = parse(yaml.safe_dump(plane.kubeconfig("admin", "system:masters")))
        self.cluster = joining.join(
            name=self.node,
            region=REGION,
            kubeconfig=self.kubeconfig,
            driver="device_plugin",
            actor=OPERATOR,
            now=life.now,
        )
        self.take_inventory()
        catalogue.derive_offerings(now=life.now)
        Offering.objects.update(state="published")
        self.home = home()

    def take_inventory(self) -> list[str]:
        transport = Transport(lambda: self.kubeconfig)
        items, _ = transport.within().list_all(NODE, fields=f"metadata.name={self.node}")
        found = PLUGIN.inventory([read(each, Node) for each in items], [])
        return joining.take_inventory(self.cluster, found, now=self.life.now)

    def until(self, lease: Lease, state: str, *, seconds: int = 90) -> Lease:
        """Let the workers work, in real time, until a lease is in a state."""
        end = clock.monotonic() + seconds
        while clock.monotonic() < end:
            self.pass_on()
            lease = fresh(lease)
            if lease.state == state:
                return lease
        raise AssertionError(f"{lease.state}, not {state}: {lease.progress} {lease.waits_for}")

    def pass_on(self) -> None:
        """Let a moment of real time pass, and workers, beat and agent do what they do in the product.

        No less: where an agent follows, workers leave it to that to tell of what comes, and to beat should it not.
        """
        if self.agent:
            self.agent.turn(0.05)
        else:
            clock.sleep(0.05)
        self.life.clock.at = datetime.now(UTC) + self.skew
        self.life.run(0)
        if clock.monotonic() >= self._beat_at:
            self._beat_at = clock.monotonic() + BEAT_S
            self.life.sweep()

    def ours(self, kind: str) -> list[dict[str, Any]]:
        mine = f"gpubroker.dev/project={self.home.project.pk}"
        return self.plane.api.items(kind, labelSelector=mine)


@pytest.fixture
def life(db: None) -> Iterator[Life]:
    """Let time be the real one, and ids too: the cluster is shared, and remembers."""
    with clock.standing_at(datetime.now(UTC)) as standing:
        made = Life(standing)
        with doorbell.heard_by(made.hear):
            yield made


@pytest.fixture
def installed(
    control_plane: ControlPlane, gpu_nodes: Nodes, life: Life, settings: Any
) -> Iterator[Installation]:
    settings.CREDENTIAL_KEYS = Fernet.generate_key().decode()
    made = Installation(control_plane, gpu_nodes, life)
    yield made
    clusters._of_cluster.cache_clear()
    close(control_plane.api, f"gpubroker.dev/project={made.home.project.pk}")


def offering(profile: str) -> Offering:
    return Offering.objects.get(gpu_model=MODEL, profile=profile, price_class="on_demand")


def test_a_lease_runs_as_a_pod_and_leaves_nothing(installed: Installation) -> None:
    life = installed.life
    lease = life.ask(installed.home, offering("1g.10gb"), image="registry.example/acts:pull-1s")
    lease = installed.until(lease, "active")
    (pod,) = installed.ours("/api/v1/pods")
    assert pod["spec"]["nodeName"] == installed.node
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == "1"
    assert pod["metadata"]["labels"]["gpubroker.dev/lease"] == lease.pk
    life.release(lease)
    lease = installed.until(lease, "released")
    assert path(lease) == "requested queued provisioning active releasing released"
    assert installed.ours("/api/v1/pods") == []
    assert installed.ours("/api/v1/configmaps") == []
    assert held(lease) == []


def test_what_we_write_is_written_under_names_of_our_own(installed: Installation) -> None:
    """Whoever else writes a field of it is seen by that, and so is what they wrote."""
    asked = installed.life.ask(installed.home, offering("1g.10gb"), workload="jupyter")
    installed.until(asked, "active")

    def writers(*kinds: str) -> list[set[str]]:
        found = [[each["metadata"]["managedFields"] for each in installed.ours(kind)] for kind in kinds]
        return [{by["manager"] for of in each for by in of if "subresource" not in by} for each in found]

    walls = ("namespaces", "serviceaccounts", "resourcequotas", "limitranges")
    of_project = writers(*(f"/api/v1/{kind}" for kind in walls), "/apis/networking.k8s.io/v1/networkpolicies")
    of_lease = writers(
        "/api/v1/configmaps", "/api/v1/secrets", "/api/v1/services", "/apis/apps/v1/statefulsets"
    )
    assert (of_project, of_lease) == ([{labels.PROJECTS}] * 5, [{labels.LEASES}] * 4)


def test_an_image_that_is_never_pulled_ends_the_lease_unpaid(installed: Installation) -> None:
    lease = installed.life.ask(installed.home, offering("card"), image="registry.example/acts:never-pulls")
    installed.until(lease, "provisioning")
    end = clock.monotonic() + 90
    while "cannot be pulled" not in str(fresh(lease).progress):
        assert clock.monotonic() < end, fresh(lease).progress
        installed.pass_on()
    assert fresh(lease).active_at is None


def test_credentials_are_kept_sealed_and_are_in_no_record(installed: Installation) -> None:
    key = installed.kubeconfig["users"][0]["user"]["client-key-data"]
    kept = bytes(ClusterCredential.objects.get(cluster=installed.cluster).sealed)
    assert key.encode() not in kept
    with as_staff():
        told = str(list(AuditEvent.objects.filter(action="cluster.join").values()))
    assert installed.cluster.address in told
    assert key not in told


def test_the_cards_of_a_node_become_inventory_and_follow_what_it_reports(
    installed: Installation, gpu_nodes: Nodes
) -> None:
    cards = Gpu.objects.filter(node__cluster=installed.cluster).order_by("index")
    assert [card.fixed_layout[0]["profile"] for card in cards] == ["card", "1g.10gb"]
    assert len(cards[1].fixed_layout) == 7
    gpu_nodes.give(installed.node, **{"nvidia.com/gpu": 0})
    installed.take_inventory()
    assert [card.health for card in cards.all()] != ["healthy", "healthy"]
    gpu_nodes.give(installed.node, **{"nvidia.com/gpu": 1})
    assert installed.take_inventory() == []
    assert [card.health for card in cards.all()] == ["healthy", "healthy"]
