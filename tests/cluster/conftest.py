"""Fixtures of tests on a real control plane."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cluster.access_record import AccessRecord
    from tests.cluster.installation import Installation
    from tests.cluster.running_agent import RunningAgent
    from tests.cluster.stages import KubernetesStage, SimulatedStage, Stage
    from tests.controlplane.nodes import Nodes
    from tests.controlplane.plane import ControlPlane
    from tests.simulation import Simulation

PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a test's slow server more time than a worker does.

    Tests of how long we wait set that themselves, later than this.
    """
    from broker.provisioners.kubernetes.client.transport import Transport

    monkeypatch.setattr(Transport.within, "__defaults__", (PATIENCE_S,))


@pytest.fixture
def sim(db: None) -> "Iterator[Simulation]":
    """Use real time and random ids, because tests share the cluster."""
    from ports import clock, outbox
    from tests.simulation import Simulation

    with clock.frozen_at(datetime.now(UTC)) as standing:
        made = Simulation(standing)
        with outbox.captured(made.record_message):
            yield made


@pytest.fixture
def installed(
    control_plane: "ControlPlane", gpu_nodes: "Nodes", sim: "Simulation", settings: Any
) -> "Iterator[Installation]":
    """Register the cluster with one node on sale, and a tenant."""
    from cryptography.fernet import Fernet

    from broker.services.inventory import cluster_provisioners
    from tests.cluster.installation import Installation
    from tests.cluster.installed import close

    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    made = Installation(control_plane, gpu_nodes, sim)
    yield made
    cluster_provisioners._load_for_cluster.cache_clear()
    close(control_plane.api, f"gpubroker.dev/project={made.home.project.pk}")


@pytest.fixture
def watching(installed: "Installation") -> "Iterator[RunningAgent]":
    """Run an agent for the cluster."""
    from tests.cluster.running_agent import RunningAgent

    made = RunningAgent(installed)
    yield made
    made.ended.set()


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> "Iterator[AccessRecord]":
    """Record requests and refusals for missing rights from now on."""
    from broker.provisioners.kubernetes.client import transport
    from broker.provisioners.kubernetes.client.api_errors import AccessDenied
    from tests.cluster.access_record import AccessRecord

    made, send, watch = AccessRecord(), transport.KubernetesApi.send, transport.KubernetesApi.watch

    def noted(self: transport.KubernetesApi, method: str, path: str, **rest: Any) -> Any:
        made.note(method, path, rest.get("query"), rest.get("content_type", ""))
        try:
            return send(self, method, path, **rest)
        except AccessDenied as denied:
            made.denied.append(str(denied))
            raise

    def watched(self: transport.KubernetesApi, kind: Any, **rest: Any) -> Iterator[bytes]:
        made.note("GET", kind.path(), {"watch": "true"}, "")
        return watch(self, kind, **rest)

    monkeypatch.setattr(transport.KubernetesApi, "send", noted)
    monkeypatch.setattr(transport.KubernetesApi, "watch", watched)
    return made


@pytest.fixture(params=["simulated", pytest.param("kubernetes", marks=pytest.mark.cluster)])
def stage(request: pytest.FixtureRequest) -> "Iterator[Stage]":
    """Create the stage of each provisioner that is available here."""
    from tests.cluster.stages import KubernetesStage, SimulatedStage

    if request.param == "simulated":
        request.getfixturevalue("db")
        yield SimulatedStage()
        return
    made = KubernetesStage(request.getfixturevalue("control_plane"), request.getfixturevalue("gpu_nodes"))
    yield made
    made.clear()


@pytest.fixture
def simulated_stage(db: None) -> "SimulatedStage":
    """Create the stage of the simulated provisioner."""
    from tests.cluster.stages import SimulatedStage

    return SimulatedStage()


@pytest.fixture
def kubernetes_stage(control_plane: "ControlPlane", gpu_nodes: "Nodes") -> "Iterator[KubernetesStage]":
    """Create the Kubernetes provisioner with a real control plane."""
    from tests.cluster.stages import KubernetesStage

    made = KubernetesStage(control_plane, gpu_nodes)
    yield made
    made.clear()
