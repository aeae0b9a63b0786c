"""A cluster for tests: shared by a worker, or a test's own."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.controlplane.commands import Options
from tests.controlplane.nodes import Nodes
from tests.controlplane.plane import ControlPlane

OwnControlPlane = Callable[..., ControlPlane]
# Played kubelets do not say again that a pod is ready once its node was believed dead, as real ones do.
PATIENT = Options(node_lease_s=60, node_grace_s=120)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Start this worker's shared cluster."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def own_control_plane() -> Iterator[OwnControlPlane]:
    """Start separate clusters for tests that stop or kill their parts."""
    with ExitStack() as running:
        yield lambda options=None: running.enter_context(ControlPlane(options or Options()))


@pytest.fixture(scope="session")
def _whole() -> Iterator[ControlPlane]:
    with ControlPlane(PATIENT) as plane:
        yield plane


@pytest.fixture
def brittle_control_plane(_whole: ControlPlane) -> Iterator[ControlPlane]:
    """Return the worker's second cluster, whose parts may be killed."""
    yield _whole
    _whole.mend()


@pytest.fixture
def brittle_nodes(brittle_control_plane: ControlPlane) -> Iterator[Nodes]:
    """Add nodes to the cluster that may be broken."""
    fleet = Nodes(brittle_control_plane.api, f"node-{secrets.token_hex(4)}")
    yield fleet
    brittle_control_plane.mend()
    fleet.clear()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Make a namespace that is ready for pods."""
    name = f"test-{secrets.token_hex(5)}"
    api = control_plane.api
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    api.until(f"/api/v1/namespaces/{name}/serviceaccounts/default", lambda account: True)
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def gpu_nodes(control_plane: ControlPlane) -> Iterator[Nodes]:
    """Add nodes that only this test uses."""
    fleet = Nodes(control_plane.api, f"node-{secrets.token_hex(4)}")
    yield fleet
    fleet.clear()
