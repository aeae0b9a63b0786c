"""Web terminals through a real API server, to shells that the played kubelets start.

Nodes without the address of their kubelet have no shells: the server says that it reaches nobody.
"""

import asyncio
from typing import Any

import pytest

from broker.models import Lease, get_installation_id
from broker.provisioners.kubernetes.client.api_connection import connect_api
from broker.provisioners.kubernetes.client.exec_stream import ExecStream, open_exec_stream
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.cluster_install import broker_kubeconfig
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.pod_terminal import COMMAND, CONTAINER, open_pod_terminal
from broker.provisioners.terminals import TerminalSize, TerminalUnavailable
from broker.services.clusters.registration import cluster_registration
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.rls import tenant_scope
from tests.broker.domain.fleet import MODELS
from tests.broker.domain.workloads.test_workloads import KEY
from tests.cluster.installation import Installation, offering
from tests.controlplane.kubelet_server import give_kubelet_address
from tests.controlplane.plane import LOCAL
from tests.simulation import OPERATOR

pytestmark = pytest.mark.cluster
NO_KUBELET = "The cluster refused the terminal (HTTP 5"
STRANGER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "stranger", "namespace": "default"},
    "spec": {"containers": [{"name": CONTAINER, "image": "registry.example/stranger"}]},
}


@pytest.fixture
def broker(installed: Installation) -> dict[str, Any]:
    """Use the broker's own account for the cluster from now on; return its kubeconfig."""
    made = broker_kubeconfig(Transport(lambda: installed.kubeconfig).within(60), installed.kubeconfig)
    cluster_registration.renew_credentials(installed.cluster, made, actor=OPERATOR, now=installed.sim.now)
    return made


def refusal_of(kubeconfig: dict[str, Any], namespace: str, pod: str) -> str:
    """Return why a shell did not start."""

    async def use() -> str:
        with pytest.raises(TerminalUnavailable) as refused:
            await open_exec_stream(
                connect_api(kubeconfig), namespace=namespace, pod=pod, container=CONTAINER, command=COMMAND
            )
        return str(refused.value)

    return asyncio.run(use())


def running(installed: Installation) -> tuple[Lease, str, str]:
    """Return an active lease with the namespace and name of its pod."""
    requested = installed.sim.request_lease(installed.home, offering("1g.10gb"), workload="ssh", ssh_keys=[KEY])
    lease = installed.until(requested, "active")
    (pod,) = installed.ours("/api/v1/pods")
    return lease, pod["metadata"]["namespace"], pod["metadata"]["name"]


def test_the_brokers_account_opens_terminals_in_projects_and_nowhere_else(
    installed: Installation, broker: dict[str, Any]
) -> None:
    _, namespace, name = running(installed)
    assert refusal_of(broker, namespace, name).startswith(NO_KUBELET)
    installed.plane.api.create(STRANGER)
    try:
        said = refusal_of(broker, "default", "stranger")
    finally:
        installed.plane.api.delete("/api/v1/namespaces/default/pods/stranger")
    assert said.startswith("The cluster does not allow terminals.")


def test_a_terminal_finds_the_pod_of_its_lease(installed: Installation, broker: dict[str, Any]) -> None:
    lease, _, _ = running(installed)
    with tenant_scope(lease.tenant_id):
        spec = load_provision_spec(lease)
    # Of its own: another thread does not see the rows of this test's transaction.
    connection = ClusterConnection(Transport(lambda: broker), DevicePluginDriver(MODELS), get_installation_id())
    with pytest.raises(TerminalUnavailable) as refused:
        asyncio.run(open_pod_terminal(spec, TerminalSize(), connection=connection))
    assert str(refused.value).startswith(NO_KUBELET)


async def read_until(terminal: ExecStream, wanted: bytes) -> bytes:
    """Read what a shell prints until it has printed something."""
    seen = b""
    async with asyncio.timeout(30):
        while wanted not in seen:
            output = await terminal.read()
            assert output, (seen, terminal.end_reason)
            seen += output
    return seen


def test_a_shell_answers_and_knows_its_size(installed: Installation, broker: dict[str, Any]) -> None:
    lease, _, _ = running(installed)
    give_kubelet_address(installed.plane.api, installed.node, host=LOCAL, port=installed.plane.places.kubelets)
    with tenant_scope(lease.tenant_id):
        spec = load_provision_spec(lease)
    connection = ClusterConnection(Transport(lambda: broker), DevicePluginDriver(MODELS), get_installation_id())

    async def use() -> str:
        terminal = await open_pod_terminal(spec, TerminalSize(100, 30), connection=connection)
        await terminal.write(b"echo answer-$((6*7))\n")
        await read_until(terminal, b"answer-42")
        await terminal.resize(TerminalSize(120, 40))
        await terminal.write(b"sleep 0.5; stty size\n")
        await read_until(terminal, b"40 120")
        await terminal.write(b"exit\n")
        async with asyncio.timeout(30):
            while await terminal.read():
                pass
        return terminal.end_reason

    assert asyncio.run(use()) == "the shell exited with code 0"
