"""The kind demo with real Helm, kubectl and API server."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from broker.provisioners.kubernetes.client.kubeconfig import parse_kubeconfig, server_address
from tests.controlplane import binaries
from tests.controlplane.fixtures import OwnControlPlane
from tests.controlplane.nodes import Nodes
from tests.controlplane.plane import ControlPlane

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "demo" / "kind"
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> {log}
case "$*" in "get clusters") echo gpubroker-demo ;; esac
"""
# The played kubelet lets a program run for ever unless its pod says otherwise, and a migration must end.
HELM = """#!/bin/sh
case "$*" in
  *deploy/chart*) exec {helm} "$@" --set-string 'migrate.podAnnotations.kubelet\\.test/script=succeed-100ms' ;;
  *) exec {helm} "$@" ;;
esac
"""


def program(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def control_plane(own_control_plane: OwnControlPlane) -> ControlPlane:
    """Start a separate cluster, because the demo installs cluster-wide objects."""
    plane = own_control_plane()
    Nodes(plane.api, "laptop").add()
    return plane


@pytest.fixture
def laptop(control_plane: ControlPlane, tmp_path: Path) -> dict[str, str]:
    """Return an environment in which kind is our control plane."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("kind", "docker"):
        program(tools / name, STAND_IN.format(log=tmp_path / "log"))
    helm, kubectl = binaries.find_binary("helm"), binaries.find_binary("kubectl")
    assert helm, "no Helm: make controlplane builds it"
    assert kubectl, "no kubectl: make controlplane builds it"
    program(tools / "helm", HELM.format(helm=helm))
    (tools / "kubectl").symlink_to(kubectl)

    kubeconfig = control_plane.kubeconfig("admin", "system:masters")
    kubeconfig["contexts"][0]["name"] = "kind-gpubroker-demo"
    (tmp_path / "kubeconfig").touch(mode=0o600)
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))

    operator = tmp_path / "operator"
    (operator / "templates").mkdir(parents=True)
    (operator / "Chart.yaml").write_text("{apiVersion: v2, name: pretended, version: 0.0.1}")
    (operator / "templates" / "pool.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: topology}, data:"
        ' {count: "{{ .Values.topology.nodePools.default.gpuCount }}"}}'
    )
    return {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "kubeconfig"),
        "FAKE_GPU_OPERATOR": str(operator),
    }


def demo(verb: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(FOLDER / "demo.sh"), verb], env=env, capture_output=True, text=True, check=False)


def phases(plane: ControlPlane) -> list[str]:
    return [pod["status"]["phase"] for pod in plane.api.items("/api/v1/namespaces/gpubroker/pods")]


@pytest.mark.cluster
@pytest.mark.deep
def test_the_demo_starts_twice_and_keeps_its_passwords(
    control_plane: ControlPlane, laptop: dict[str, str], tmp_path: Path
) -> None:
    kept = []
    for _ in range(2):
        done = demo("up", laptop)
        assert done.returncode == 0, done.stdout + done.stderr
        kept.append(control_plane.api.get("/api/v1/namespaces/gpubroker/secrets/gpubroker-database")["data"])
    assert set(kept[0]) == {"owner", "web", "worker"}
    assert kept[0] == kept[1]
    # Helm waits for as many as must be ready: what an upgrade replaces may have another beside it for a moment.
    end = time.monotonic() + 90
    while phases(control_plane) != ["Running"] * 9:  # seven processes, PostgreSQL and Valkey
        assert time.monotonic() < end, phases(control_plane)
        time.sleep(0.2)
    assert "port-forward service/gpubroker-web 8000:80" in done.stdout
    log = (tmp_path / "log").read_text()
    assert "docker build -f" in log
    assert "kind load docker-image gpubroker:demo --name gpubroker-demo" in log
    # And its GPUs can be sold: what is printed can be pasted, and somebody follows the cluster that joins by it.
    way = parse_kubeconfig(demo("way-in", laptop).stdout)
    signed = control_plane.kubeconfig("admin")["clusters"][0]["cluster"]["certificate-authority-data"]
    assert way["clusters"][0]["cluster"]["certificate-authority-data"] == signed
    assert server_address(way) == "https://kubernetes.default.svc"
    assert way["users"][0]["user"] == {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}
    followed = demo("follow", laptop)
    assert followed.returncode == 0, followed.stdout + followed.stderr
    agent = control_plane.api.get("/apis/apps/v1/namespaces/gpubroker/deployments/gpubroker-agent-laptop")
    pod = agent["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("gpubroker-broker", True)


def test_the_demo_lists_missing_programs(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    bare = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path), "FAKE_GPU_OPERATOR": ""}
    for name in ("docker", "kubectl", "helm"):
        program(tools / name, "#!/bin/sh\n")
    missing = demo("up", bare)
    assert (missing.returncode, missing.stderr) == (
        1,
        "kind is not on the path; install it and try again.\n",
    )
    program(tools / "kind", "#!/bin/sh\n")
    unnamed = demo("up", bare)
    assert unnamed.returncode != 0
    assert "name the chart of run-ai/fake-gpu-operator in it" in unnamed.stderr
    assert demo("sideways", bare).returncode == 2
