"""Examination of a real control plane before and after installation, and with fewer rights."""

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from broker.models import Cluster, ClusterCredential
from broker.provisioners.kubernetes.client.kubeconfig import parse_kubeconfig
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_install import broker_kubeconfig, install_cluster
from broker.provisioners.kubernetes.doctor import network_probe
from broker.provisioners.kubernetes.doctor.examination import examine_cluster, has_no_bad_finding
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome, ClusterFinding
from broker.provisioners.kubernetes.doctor.snapshot_collection import RegisteredCluster, collect_snapshot
from broker.services.inventory import gpu_catalogue
from tests.cluster.stages import PLUGIN
from tests.controlplane.certificates import Authority
from tests.controlplane.nodes import GpuNode, ready
from tests.controlplane.plane import ControlPlane

Findings = dict[str, ClusterFinding]
OwnControlPlane = Callable[..., ControlPlane]
# What a bare cluster lacks; kwok plays no operator, network, exporter, ingress or storage.
LACKS_BARE = {"priority-classes", "admission-policies", "gpu-nodes", "nodes-ready"}


def look(kubeconfig: Any, known: RegisteredCluster | None = None, *, tries: str = "") -> Findings:
    now = datetime.now(UTC)
    found = collect_snapshot(
        parse_kubeconfig(yaml.safe_dump(kubeconfig)),
        PLUGIN,
        known=known or RegisteredCluster(),
        now=now,
        tries=tries,
    )
    return {each.name: each for each in examine_cluster(found)}


def bad(findings: Findings) -> set[str]:
    return {name for name, each in findings.items() if each.outcome is CheckOutcome.BAD}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Start a bare cluster."""
    with ControlPlane() as made:
        yield made


def admin(plane: ControlPlane) -> Any:
    return plane.kubeconfig("admin", "system:masters")


@pytest.mark.cluster
def test_a_bare_cluster_passes_the_examination_after_installation(own_control_plane: OwnControlPlane) -> None:
    plane = own_control_plane()
    bare = look(admin(plane))
    assert bare["reachable"].outcome is CheckOutcome.OK
    assert bad(bare) >= LACKS_BARE
    assert bare["pod-security"].outcome is CheckOutcome.OK
    assert bare["clock"].outcome is CheckOutcome.OK
    assert bare["rights-too-wide"].outcome is CheckOutcome.WARN

    api = Transport(lambda: parse_kubeconfig(yaml.safe_dump(admin(plane)))).within(60)
    first = install_cluster(api, PLUGIN, image="gpubroker:1")
    assert {done.outcome for done in first} == {"made"}
    again = install_cluster(api, PLUGIN, image="gpubroker:1")
    assert {done.outcome for done in again} == {"unchanged"}
    plane.api.create(GpuNode(gpus=8, cut=1, mig={"1g.10gb": 7}).manifest("gpu-1"))
    plane.api.until("/api/v1/nodes/gpu-1", lambda seen: ready(seen) == "True")

    narrow = broker_kubeconfig(api, admin(plane))
    own = look(narrow)
    assert bad(own) == set(), own
    assert [own[name].outcome for name in ("rights", "rights-to-examine", "rights-too-wide")] == [CheckOutcome.OK] * 3
    assert own["reaper"].outcome is CheckOutcome.OK
    assert own["admission-policies"].outcome is CheckOutcome.OK
    assert own["sellable-gpus"].seen == "8 GPUs can be sold"
    unread = [each for each in own.values() if "could not be read" in each.seen]
    assert unread == []
    assert own["same-cluster"].outcome is CheckOutcome.OK
    assert look(narrow, RegisteredCluster(uid="another"))["same-cluster"].outcome is CheckOutcome.BAD


@pytest.mark.cluster
def test_changed_cluster_objects_are_reported_and_repaired(plane: ControlPlane) -> None:
    api = Transport(lambda: parse_kubeconfig(yaml.safe_dump(admin(plane)))).within(60)
    install_cluster(api, PLUGIN, image="gpubroker:1")
    policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/gpub-services"
    plane.api.patch(policy, {"spec": {"validations": [{"expression": "true"}]}})
    plane.api.delete("/apis/scheduling.k8s.io/v1/priorityclasses/gpub-spot")
    plane.api.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "gpub-spot"},
            "value": 5000,
        }
    )
    seen = look(admin(plane))
    assert "gpub-services" in seen["admission-policies"].seen
    assert "gpub-spot" in seen["priority-classes"].seen
    changed = {done.ref.name for done in install_cluster(api, PLUGIN, image="gpubroker:1") if done.outcome == "changed"}
    assert changed == {"gpub-services", "gpub-spot"}
    after = look(admin(plane))
    assert [after[name].outcome for name in ("admission-policies", "priority-classes")] == [CheckOutcome.OK] * 2


@pytest.mark.cluster
def test_admission_policies_are_tested_in_a_project_namespace(plane: ControlPlane) -> None:
    api = Transport(lambda: parse_kubeconfig(yaml.safe_dump(admin(plane)))).within(60)
    install_cluster(api, PLUGIN, image="gpubroker:1")
    marks = {"app.kubernetes.io/managed-by": "gpubroker"}
    plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gt-tried", "labels": marks}})
    becomes(plane, CheckOutcome.OK)
    assert plane.api.items("/api/v1/namespaces/gt-tried/services") == []
    plane.api.delete("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/gpub-services")
    becomes(plane, CheckOutcome.BAD)


def becomes(plane: ControlPlane, outcome: CheckOutcome) -> None:
    """Wait until the policy check has this outcome; policies apply with a delay."""
    end = time.monotonic() + 90
    while (seen := look(admin(plane))["admission-works"]).outcome is not outcome:
        assert time.monotonic() < end, seen


@pytest.mark.deep
@pytest.mark.cluster
def test_network_policies_are_tested_with_pods_that_are_removed_afterwards(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulate the network probe by the tag of its image."""
    plane.api.create(GpuNode(gpus=1).manifest("tries-1"))
    plane.api.until("/api/v1/nodes/tries-1", lambda seen: ready(seen) == "True")
    ends = (
        ("HELD", "succeed-1s", CheckOutcome.OK, "made a pod unreachable"),
        ("", "fail-1s", CheckOutcome.UNKNOWN, "ended with exit code 1: "),
        ("POLICY_BROKEN", "fail-1s", CheckOutcome.BAD, "reachable against its policy"),
        ("NOTHING_REACHED", "fail-1s", CheckOutcome.UNKNOWN, "even the pod without a policy"),
        ("", "never-pulls", CheckOutcome.UNKNOWN, "Pull"),
    )
    for how, script, outcome, words in ends:
        for name in ("POLICY_BROKEN", "NOTHING_REACHED"):
            monkeypatch.setattr(network_probe, name, 1 if name == how else 99)
        monkeypatch.setattr(network_probe, "WITHIN_S", 5.0 if script == "never-pulls" else 60.0)
        found = look(admin(plane), tries=f"registry.example/acts:{script}")["network-policies"]
        assert (found.outcome, words in found.seen) == (outcome, True), found
    left = plane.api.items("/api/v1/namespaces", labelSelector="app.kubernetes.io/name=gpub-tries")
    assert all("deletionTimestamp" in each["metadata"] for each in left)
    denied = look(plane.kubeconfig("nobody"), tries="registry.example/acts:succeed-1s")["network-policies"]
    assert (denied.outcome, "the test could not run" in denied.seen) == (CheckOutcome.UNKNOWN, True)
    plane.api.delete("/api/v1/nodes/tries-1")


@pytest.mark.cluster
def test_credentials_without_rights_are_reported_as_missing_rights(plane: ControlPlane) -> None:
    seen = look(plane.kubeconfig("nobody"))
    assert seen["reachable"].outcome is CheckOutcome.OK
    assert {"rights"} <= bad(seen)
    assert seen["nodes-ready"].outcome is CheckOutcome.UNKNOWN
    assert not has_no_bad_finding(list(seen.values()))


@pytest.mark.cluster
def test_connection_failures_have_distinct_messages(plane: ControlPlane) -> None:
    away = admin(plane)
    away["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    nowhere = admin(plane)
    nowhere["clusters"][0]["cluster"]["server"] = "https://no-such-host.invalid:6443"
    foreign_ca = admin(plane)
    foreign_certificate = b64encode(Authority.new().certificate).decode()
    foreign_ca["clusters"][0]["cluster"]["certificate-authority-data"] = foreign_certificate
    revoked = plane.kubeconfig_of_token("revoked-long-ago")
    words = {"port": away, "DNS": nowhere, "certificate-authority-data": foreign_ca, "revoked": revoked}
    with ThreadPoolExecutor() as pool:  # each is asked until our patience ends
        looks = {word: pool.submit(look, kubeconfig) for word, kubeconfig in words.items()}
    for word, looked in looks.items():
        found = looked.result()
        assert list(found) == ["reachable"], found
        assert word in found["reachable"].fix, found["reachable"]


@pytest.mark.deep
@pytest.mark.cluster
@pytest.mark.django_db
def test_the_setup_and_doctor_commands_install_register_and_examine_a_cluster(
    plane: ControlPlane, tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    gpu_catalogue.load_gpu_models()
    file = tmp_path / "admin.yaml"
    file.write_text(yaml.safe_dump(admin(plane)))
    narrow = tmp_path / "narrow.yaml"
    call_command(
        "kube_setup",
        kubeconfig=file,
        register="north",
        region="eu-north",
        credentials=narrow,
        image="gpubroker:1",
    )
    said = capsys.readouterr().out
    assert "registered north" in said
    assert narrow.stat().st_mode & 0o777 == 0o600
    token = yaml.safe_load(narrow.read_text())["users"][0]["user"]["token"]
    assert token not in said
    kept = bytes(ClusterCredential.objects.get(cluster=Cluster.objects.get(name="north")).sealed)
    assert token.encode() not in kept

    with pytest.raises(SystemExit):
        call_command("kube_doctor", kubeconfig=_lost(tmp_path, plane))
    assert "BAD     reachable" in capsys.readouterr().out
    with suppress(SystemExit):
        call_command("kube_doctor", "north", json=True)
    found = json.loads(capsys.readouterr().out)
    assert len(found["findings"]) >= 40
    assert {each["name"]: each["outcome"] for each in found["findings"]}["leftovers"] == "ok"
    with pytest.raises(CommandError, match="already"):
        call_command("kube_setup", kubeconfig=file, register="north", region="eu-north")


def _lost(folder: Path, plane: ControlPlane) -> Path:
    kubeconfig = admin(plane)
    kubeconfig["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    file = folder / "lost.yaml"
    file.write_text(yaml.safe_dump(kubeconfig))
    return file
