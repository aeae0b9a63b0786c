"""Logs of leases through a real API server with emulated kubelets."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from broker.models import Lease, LeaseLog
from broker.provisioners.kubernetes.client.api_errors import AccessDenied
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_install import broker_kubeconfig
from broker.provisioners.kubernetes.observe import container_logs
from broker.services.clusters.registration import cluster_registration
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.logs import log_collection, log_pages
from tenants.services.rls import tenant_scope
from tests.broker.services.secrets.saved_secrets import VALUE, save_secret
from tests.cluster.installation import Installation, offering
from tests.controlplane.kubelet_server import OUTPUT, PREVIOUS, give_kubelet_address, write_output
from tests.controlplane.plane import LOCAL
from tests.simulation import OPERATOR, reload_lease

ACTS = "registry.example/acts"
BATCH = {"workload": "batch", "image": f"{ACTS}:pull-0s", "command": "train"}


@pytest.fixture
def output(installed: Installation) -> Iterator[Path]:
    """Return the file with the output of every container; it is emptied afterwards."""
    plane = installed.plane
    give_kubelet_address(plane.api, installed.node, host=LOCAL, port=plane.places.kubelets)
    yield plane.folder / OUTPUT
    for name in (OUTPUT, PREVIOUS):
        (plane.folder / name).write_text("")


def active(installed: Installation, **wanted: Any) -> Lease:
    return installed.until(
        installed.sim.request_lease(installed.home, offering("1g.10gb"), **{**BATCH, **wanted}), "active"
    )


def collect_now(lease: Lease) -> None:
    with tenant_scope(lease.tenant_id):
        current = reload_lease(lease)
        spec, log = load_provision_spec(current, with_secrets=True), LeaseLog.objects.get(pk=current.pk)
    log_collection.collect_last_output(current, spec, log, now=datetime.now(UTC))


def collect(lease: Lease) -> list[str]:
    """Collect a log and return everything that its program has written."""
    collect_now(lease)
    with tenant_scope(lease.tenant_id):
        assert LeaseLog.objects.get(pk=lease.pk).fault == ""
        return [each.line.text for each in log_pages.iterate_lines(lease) if each.line.source == "program"]


def test_output_is_read_once_while_it_is_written_and_once_more_at_the_end(
    installed: Installation, output: Path
) -> None:
    lease = active(installed)
    now = datetime.now(UTC)
    write_output(output, [(now, "one"), (now + timedelta(microseconds=1), "two")])
    assert collect(lease) == ["one", "two"]
    assert collect(lease) == ["one", "two"]
    write_output(output, [(now + timedelta(microseconds=2), "three")])
    assert collect(lease) == ["one", "two", "three"]
    write_output(output, [(now + timedelta(seconds=1), "last words")])
    installed.sim.release_lease(lease)
    installed.until(lease, "released")
    assert collect(lease) == ["one", "two", "three", "last words"]


def test_output_larger_than_one_read_arrives_complete(
    installed: Installation, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_logs, "READ_BYTES", 4096)
    lease = active(installed)
    began = datetime.now(UTC)
    wanted = [f"line {number}" for number in range(200)]
    write_output(output, [(began + timedelta(seconds=number / 2), text) for number, text in enumerate(wanted)])
    assert collect(lease) == wanted


def test_secrets_are_masked_in_what_a_kubelet_returns(installed: Installation, output: Path) -> None:
    secret = save_secret(installed.home)
    lease = active(installed, secrets={"HF_TOKEN": secret.pk})
    write_output(output, [(datetime.now(UTC), f"logging in with {VALUE}")])
    assert collect(lease) == ["logging in with ***"]


def test_events_of_its_pod_are_told_in_plain_words(installed: Installation, output: Path) -> None:
    lease = active(installed)
    collect(lease)
    with tenant_scope(lease.tenant_id):
        texts = [each.line.text for each in log_pages.iterate_lines(lease) if each.line.source == "platform"]
    assert "A node was assigned." in texts


def test_the_brokers_own_account_reads_logs_of_its_projects_only(installed: Installation, output: Path) -> None:
    api = Transport(lambda: installed.kubeconfig).within(60)
    own = broker_kubeconfig(api, installed.kubeconfig)
    cluster_registration.renew_credentials(installed.cluster, own, actor=OPERATOR, now=installed.sim.now)
    lease = active(installed)
    write_output(output, [(datetime.now(UTC), "hello")])
    assert collect(lease) == ["hello"]
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
    }
    installed.plane.api.create(stranger)
    mine = Transport(lambda: own).within(20)
    with pytest.raises(AccessDenied, match="forbidden"):
        mine.read_text("/api/v1/namespaces/default/pods/stranger/log", {})
    installed.plane.api.delete("/api/v1/namespaces/default/pods/stranger")


def test_a_cluster_set_up_by_an_earlier_version_says_what_to_do(installed: Installation, output: Path) -> None:
    api = Transport(lambda: installed.kubeconfig).within(60)
    own = broker_kubeconfig(api, installed.kubeconfig)
    cluster_registration.renew_credentials(installed.cluster, own, actor=OPERATOR, now=installed.sim.now)
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/gpubroker-pod-access"
    kept = installed.plane.api.get(role)
    installed.plane.api.delete(role)
    try:
        lease = active(installed)
        collect_now(lease)
        with tenant_scope(lease.tenant_id):
            assert "run `manage.py kube_setup` for it again" in LeaseLog.objects.get(pk=lease.pk).fault
    finally:
        kept["metadata"] = {"name": kept["metadata"]["name"], "labels": kept["metadata"]["labels"]}
        installed.plane.api.create(kept)
