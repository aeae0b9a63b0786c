"""A cluster for tests: shared by a worker, or a test's own."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.controlplane.commands import Options
from tests.controlplane.nodes import Nodes
from tests.controlplane.plane import ControlPlane

OwnControlPlane = Callable[..., ControlPlane]


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Start this worker's cluster; tests keep to their own namespaces and nodes and leave its parts alone."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def own_control_plane() -> Iterator[OwnControlPlane]:
    """Start clusters of the test's own, for what stops or kills their parts."""
    with ExitStack() as running:
        yield lambda options=None: running.enter_context(ControlPlane(options or Options()))


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
