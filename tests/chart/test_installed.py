"""Install, upgrade and uninstall the chart on a real API server."""

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker.provisioners.kubernetes.render import rbac
from tests.chart.rendering import ADDRESS, CHART, FULL, Refused, helm
from tests.controlplane.api import Api
from tests.controlplane.nodes import Nodes
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster
# Full, less what this cluster does not have: Prometheus' kinds, and nodes with those labels.
HERE: dict[str, Any] = {**FULL, "serviceMonitor": {"enabled": False}, "nodeSelector": {}, "affinity": {}}
# A migration that ends well; every other process goes on.
MIGRATES = {"migrate": {"podAnnotations": {"kubelet.test/script": "succeed-100ms"}}}
FORBIDDEN = [
    ("", "secrets", "get"),
    ("", "secrets", "list"),
    ("", "pods", "create"),
    ("", "nodes", "delete"),
    ("", "pods/exec", "create"),
    ("", "namespaces", "delete"),
    ("", "serviceaccounts/token", "create"),
    ("rbac.authorization.k8s.io", "clusterroles", "create"),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "patch"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "patch"),
    ("apps", "daemonsets", "create"),
    ("*", "*", "*"),
]
# What the cluster itself writes about objects, and keeps for a while when they are gone.
TRACES = {"events", "leases", "endpoints", "endpointslices", "controllerrevisions"}


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """Start a cluster for these tests, which install cluster-wide objects."""
    with ControlPlane() as plane:
        Nodes(plane.api, "node").add()
        yield plane


@pytest.fixture
def home(control_plane: ControlPlane) -> Iterator[str]:
    """Create a namespace that admits restricted pods only."""
    name = f"gpus-{secrets.token_hex(4)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    control_plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    for own in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):  # what every namespace is given
        control_plane.api.until(f"/api/v1/namespaces/{name}/{own}", lambda given: True)
    yield name
    control_plane.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def command(control_plane: ControlPlane, home: str, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Run Helm against the cluster, with folders of its own."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(json.dumps(control_plane.kubeconfig("installer", "system:masters")))
    folders = {f"HELM_{name}_HOME": str(tmp_path / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
    env = {**os.environ, **folders, "KUBECONFIG": str(kubeconfig)}

    def run(verb: str, *more: str, values: dict[str, Any] | None = None) -> str:
        return helm(verb, "gpubroker", *more, "--namespace", home, values=values, env=env)

    yield run
    with suppress(Refused):  # what a test left behind would stand in the next one's way
        run("uninstall", "--wait", "--timeout", "240s")


def everything(plane: ControlPlane, home: str) -> set[str]:
    """Return the names of all objects of a namespace and of the cluster."""
    found = set()
    groups = [f"/apis/{each['preferredVersion']['groupVersion']}" for each in plane.api.get("/apis")["groups"]]
    for root in ["/api/v1", *groups]:
        for kind in plane.api.get(root)["resources"]:
            if "/" in kind["name"] or "list" not in kind["verbs"] or kind["name"] in TRACES:
                continue
            where = f"{root}/namespaces/{home}" if kind["namespaced"] else root
            items = plane.api.items(f"{where}/{kind['name']}")
            found |= {f"{where}/{kind['name']}/{item['metadata']['name']}" for item in items}
    return found


def jobs(plane: ControlPlane, home: str) -> list[str]:
    return [each["metadata"]["name"] for each in plane.api.items(f"/apis/batch/v1/namespaces/{home}/jobs")]


@pytest.mark.deep
@pytest.mark.parametrize("values", [ADDRESS, HERE], ids=["defaults", "full"])
def test_an_installation_runs_is_upgraded_and_leaves_no_objects(
    control_plane: ControlPlane, home: str, command: Callable[..., str], values: dict[str, Any]
) -> None:
    before = everything(control_plane, home)
    command("install", str(CHART), "--wait", "--timeout", "240s", values={**values, **MIGRATES})

    apps = f"/apis/apps/v1/namespaces/{home}/deployments"
    names = {item["metadata"]["name"].removeprefix("gpubroker-") for item in control_plane.api.items(apps)}
    assert {"web", "events", "worker", "background-worker", "beat", "relay", "log-collector"} <= names
    pods = control_plane.api.items(f"/api/v1/namespaces/{home}/pods")
    ours = [pod for pod in pods if "batch.kubernetes.io/job-name" not in pod["metadata"].get("labels", {})]
    assert {pod["status"]["phase"] for pod in ours} == {"Running"}
    assert len(ours) >= 9
    policies = control_plane.api.items(f"/apis/networking.k8s.io/v1/namespaces/{home}/networkpolicies")
    assert {item["metadata"]["name"] for item in policies} >= {"gpubroker-quiet", "gpubroker-ingress"}
    budgets = control_plane.api.items(f"/apis/policy/v1/namespaces/{home}/poddisruptionbudgets")
    assert "gpubroker-web" in {item["metadata"]["name"] for item in budgets}

    command(
        "upgrade",
        str(CHART),
        "--wait",
        "--timeout",
        "240s",
        values={**values, **MIGRATES, "image": {"tag": "another"}},
    )
    web = control_plane.api.get(f"{apps}/gpubroker-web")["spec"]["template"]["spec"]["containers"][0]
    assert web["image"].startswith("gpubroker:another")
    # Migrated, and gone; a job of the dead man's switch comes at any full minute.
    assert [name for name in jobs(control_plane, home) if "-reaper-" not in name] == []

    command("uninstall", "--wait", "--timeout", "240s")
    left = everything(control_plane, home) - before
    end = time.monotonic() + 90
    while left and time.monotonic() < end:  # Helm waits for what it made, not for what that made
        time.sleep(0.2)
        left = everything(control_plane, home) - before
    assert left == set()


def test_the_service_account_has_exactly_the_rights_of_its_role(
    control_plane: ControlPlane, home: str, command: Callable[..., str]
) -> None:
    leases = {**ADDRESS, **MIGRATES, "cluster": {"leases": True}}
    command("install", str(CHART), "--timeout", "240s", values=leases)
    account = f"/api/v1/namespaces/{home}/serviceaccounts/gpubroker-broker/token"
    values = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    token = control_plane.api.say("POST", account, values)["status"]["token"]
    broker = Api(control_plane.kubeconfig_of_token(token))

    def may(group: str, kinds: str, verb: str, name: str = "") -> bool:
        wanted = {"group": group, "resource": kinds, "verb": verb, "name": name}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        return bool(
            broker.create({**review, "metadata": {}, "spec": {"resourceAttributes": wanted}})["status"]["allowed"]
        )

    rights = [(use.group, use.kinds, verb, use.name) for use in rbac.BROKER_RULES for verb in use.verbs]
    assert [right for right in rights if not may(*right)] == []
    assert [right for right in FORBIDDEN if may(*right)] == []
    command("uninstall", "--wait", "--timeout", "240s")


def test_a_failed_migration_stops_the_installation(
    control_plane: ControlPlane, home: str, command: Callable[..., str]
) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": home}}
    control_plane.api.create({**quota, "spec": {"hard": {"pods": "0"}}})
    with pytest.raises(Refused, match="migrate"):
        command("install", str(CHART), "--timeout", "3s", values={**ADDRESS, "migrate": {"timeoutSeconds": 30}})
    assert control_plane.api.items(f"/apis/apps/v1/namespaces/{home}/deployments") == []
    command("uninstall")
