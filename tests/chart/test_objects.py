"""Rendered objects are valid, and pods have only the rights they need."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import kubernetes_validate
import pytest

from tests.broker.provisioners.kubernetes.restricted_standard import violations
from tests.chart.rendering import FULL, Object, named, objects, pods, secret_files

VERSIONS = ("1.34", "1.36", "1.37")
EVERYONE = {"GPUBROKER_SECRET_KEY", "GPUBROKER_DATABASE_URL", "GPUBROKER_BROKER_URL"}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(rendered: list[Object], version: str) -> None:
    for item in rendered:
        if item["apiVersion"].startswith("monitoring.coreos.com/"):
            continue  # Prometheus' own kind: not in Kubernetes' schemas
        kubernetes_validate.validate(item, version, strict=True)


def test_every_pod_meets_the_restricted_pod_security_standard(rendered: list[Object]) -> None:
    assert [(name, found) for name, pod in pods(rendered) if (found := violations(pod))] == []


def test_root_file_systems_are_read_only_and_volumes_are_limited(
    rendered: list[Object],
) -> None:
    for name, pod in pods(rendered):
        [container] = pod["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"], name
        kinds = {next(iter(set(volume) - {"name"})) for volume in pod["spec"]["volumes"]}
        assert kinds == {"projected", "emptyDir"}, name


def test_every_container_has_requests_and_a_memory_limit(rendered: list[Object]) -> None:
    for name, pod in pods(rendered):
        resources = pod["spec"]["containers"][0]["resources"]
        assert {"cpu", "memory"} <= set(resources["requests"]), name
        assert "memory" in resources["limits"], name


def test_each_process_mounts_only_its_own_credentials(full: list[Object]) -> None:
    login = {}
    for name, pod in pods(full):
        files = secret_files(pod)
        assert set(files) >= EVERYONE, name
        login[name.removeprefix("gpubroker-")] = files["GPUBROKER_DATABASE_URL"][1]
        assert ("GPUBROKER_OWNER_DATABASE_URL" in files) == (name == "gpubroker-migrate"), name
        assert ("GPUBROKER_METRICS_TOKEN" in files) == (name == "gpubroker-web"), name
        seals = name.removeprefix("gpubroker-") in (
            *("web", "events", "worker", "background-worker", "log-collector"),
            *("agent-north", "agent-south"),
        )
        assert ("GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS" in files) == seals, name
        mails = name.removeprefix("gpubroker-") in ("web", "worker", "background-worker")
        assert ("GPUBROKER_MAIL_URL" in files) == mails, name
    web = ("web", "events", "migrate")
    worker = ("worker", "background-worker", "beat", "relay", "log-collector", "agent-north", "agent-south")
    assert login == dict.fromkeys(web, "web") | dict.fromkeys(worker, "worker")


def test_rendered_objects_contain_no_credentials(full: list[Object]) -> None:
    assert not [item for item in full if item["kind"] == "Secret"]
    assert not re.search(r"postgresql://|redis://", json.dumps(full))


def test_only_processes_that_call_clusters_mount_a_service_account_token(
    full: list[Object], defaults: list[Object]
) -> None:
    def carries(found: list[Object]) -> set[str]:
        return {name for name, pod in pods(found) if pod["spec"]["automountServiceAccountToken"]}

    assert carries(defaults) == set()
    assert carries(full) == {
        "gpubroker-worker",
        "gpubroker-background-worker",
        "gpubroker-log-collector",
        "gpubroker-events",
        "gpubroker-agent-north",
        "gpubroker-agent-south",
    }


def test_an_installation_without_leases_has_no_cluster_role(defaults: list[Object]) -> None:
    assert not [item for item in defaults if item["kind"].startswith("ClusterRole")]


def test_selectors_of_services_policies_and_budgets_match_the_intended_pods(rendered: list[Object]) -> None:
    labels = {name.removeprefix("gpubroker-"): pod["metadata"]["labels"] for name, pod in pods(rendered)}

    def chosen(selector: dict[str, str]) -> set[str]:
        return {name for name, own in labels.items() if selector.items() <= own.items()}

    for item in rendered:
        name = item["metadata"]["name"].removeprefix("gpubroker-")
        if item["kind"] == "Service":
            assert chosen(item["spec"]["selector"]) == {name}
        elif item["kind"] in ("PodDisruptionBudget", "Deployment"):
            assert chosen(item["spec"]["selector"]["matchLabels"]) == {name}
    quiet = named(rendered, "NetworkPolicy", "gpubroker-quiet")["spec"]
    assert chosen(quiet["podSelector"]["matchLabels"]) == set(labels)
    assert "ingress" not in quiet


def test_only_processes_that_call_clusters_may_reach_api_servers(full: list[Object]) -> None:
    spec = named(full, "NetworkPolicy", "gpubroker-clusters")["spec"]
    [rule] = spec["podSelector"]["matchExpressions"]
    workers = {"worker", "background-worker"}
    assert set(rule["values"]) == {*workers, "log-collector", "events", "agent-north", "agent-south"}


def test_web_and_events_are_probed_at_health_and_web_at_start_at_ready(defaults: list[Object]) -> None:
    def probed_path(process: str, probe: str) -> str:
        pod = named(defaults, "Deployment", f"gpubroker-{process}")["spec"]["template"]
        return str(pod["spec"]["containers"][0][probe]["httpGet"]["path"])

    assert probed_path("web", "startupProbe") == "/ready"
    for process in ("web", "events"):
        assert probed_path(process, "livenessProbe") == probed_path(process, "readinessProbe") == "/health"


@pytest.mark.parametrize("process", ["relay", "beat", "agent-north"])
def test_processes_without_http_are_probed_by_a_heartbeat_file(
    process: str, full: list[Object], tmp_path: Path
) -> None:
    pod = named(full, "Deployment", f"gpubroker-{process}")["spec"]["template"]
    container = pod["spec"]["containers"][0]
    wanted = container["livenessProbe"]["exec"]["command"]
    assert container["startupProbe"]["exec"]["command"] == wanted
    file = tmp_path / f"alive-{process.partition('-')[0]}"

    def is_alive() -> bool:
        here = [word.replace("/data/", f"{tmp_path}/") for word in wanted]
        return subprocess.run(here, stderr=subprocess.DEVNULL, check=False).returncode == 0

    assert not is_alive()
    file.touch()
    assert is_alive()
    long_ago = time.time() - 180
    os.utime(file, (long_ago, long_ago))
    assert not is_alive()


def test_a_budget_never_covers_a_single_pod() -> None:
    one: Object = {name: {"replicas": 1} for name in ("web", "worker", "backgroundWorker")}
    one["agent"] = {"clusters": ["north"], "replicas": 1}
    found = objects({"publicUrl": "https://gpus.example.com", **one})
    budgets = {item["metadata"]["name"] for item in found if item["kind"] == "PodDisruptionBudget"}
    assert budgets == {"gpubroker-events", "gpubroker-log-collector", "gpubroker-relay"}


def test_an_autoscaled_deployment_has_no_replica_count(full: list[Object]) -> None:
    assert "replicas" not in named(full, "Deployment", "gpubroker-web")["spec"]
    assert named(full, "HorizontalPodAutoscaler", "gpubroker-web")["spec"]["minReplicas"] == 2


def test_two_releases_share_no_name() -> None:
    def names(release: str) -> set[tuple[str, str]]:
        # One broker alone sells a cluster: what comes with that has fixed names, and Helm refuses the second.
        found = objects({**FULL, "cluster": {"leases": False}}, release=release)
        return {(item["kind"], item["metadata"]["name"]) for item in found}

    assert not names("gpubroker") & names("staging")
    assert max(len(name) for _, name in names("a-release-with-a-name-as-long-as-helm-permits-them")) <= 63


def test_every_process_finds_the_certificate_of_the_operators_ca(full: list[Object], defaults: list[Object]) -> None:
    assert {secret_files(pod).get("ca.pem") for _, pod in pods(full)} == {("our-ca", "ca.pem")}
    assert not [name for name, pod in pods(defaults) if "ca.pem" in secret_files(pod)]
