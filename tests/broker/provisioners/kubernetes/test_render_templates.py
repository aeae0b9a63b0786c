"""Saved templates in rendered objects: ports, routes and the image pull secret."""

import json
from base64 import b64decode
from dataclasses import replace
from typing import Any

import kubernetes_validate
import pytest

from broker.domain.workloads.registry_logins import RegistryLogin
from broker.domain.workloads.template_contents import TemplateContents, workload_template
from broker.domain.workloads.templates import ContainerPort, Workload, WorkloadShape
from broker.provisioners.kubernetes.render.lease import anchor, lease_objects, spec_hash
from broker.provisioners.kubernetes.render.spec import LeaseSpec
from tests.broker.provisioners.kubernetes.lease_specs import LEASE, PLUGIN, ROUTE, of_kind, pods
from tests.broker.provisioners.kubernetes.restricted_standard import violations

WEB, METRICS = ContainerPort("web", 7860), ContainerPort("metrics", 9090)
DATABASE = ContainerPort("db", 5432, is_http=False)
CONTENTS = TemplateContents(
    "ghcr.io/acme/comfy:1",
    command="main.py --listen",
    ports=(DATABASE, WEB, METRICS),
    env=(("MODE", "fast"),),
    mount_path="/workspace",
    readiness_path="/health",
    token_variable="COMFY_TOKEN",
)
LOGIN = RegistryLogin("sec_1", 2, "ghcr.io", "acme", "hunter2")
TAIL = "01m7yexample00000000000000"


def with_template(contents: TemplateContents = CONTENTS, **more: Any) -> LeaseSpec:
    custom = workload_template("tpl_1", "ComfyUI", contents)
    return replace(LEASE, workload=Workload("own", custom=custom, **more))


def rendered(lease: LeaseSpec) -> list[dict[str, Any]]:
    return lease_objects(lease, PLUGIN, anchor_uid="u-anchor")


def test_a_template_decides_what_the_container_runs() -> None:
    (pod,) = pods(rendered(with_template()))
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container["args"]) == ("ghcr.io/acme/comfy:1", ["main.py", "--listen"])
    assert container["readinessProbe"]["httpGet"]["path"] == "/health"
    assert container["readinessProbe"]["httpGet"]["port"] == 7860  # the first HTTP port
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/dev/shm", "/workspace"}
    env = {each["name"]: each for each in container["env"]}
    assert env["MODE"]["value"] == "fast"
    assert env["COMFY_TOKEN"]["valueFrom"]["secretKeyRef"]["key"] == "token"


def test_each_http_port_of_an_ingress_has_its_own_host() -> None:
    (ingress,) = of_kind(rendered(with_template()), "Ingress")
    assert {
        rule["host"]: rule["http"]["paths"][0]["backend"]["service"]["port"]["number"]
        for rule in ingress["spec"]["rules"]
    } == {f"{TAIL}.leases.example": 80, f"{TAIL}-metrics.leases.example": 9090}


def test_each_http_port_of_a_gateway_has_its_own_route() -> None:
    routes = of_kind(rendered(replace(with_template(), route=replace(ROUTE, kind="gateway"))), "HTTPRoute")
    assert {
        each["metadata"]["name"]: (each["spec"]["hostnames"], each["spec"]["rules"][0]["backendRefs"][0]["port"])
        for each in routes
    } == {
        f"l-{TAIL}-g1": ([f"{TAIL}.leases.example"], 80),
        f"l-{TAIL}-g1-metrics": ([f"{TAIL}-metrics.leases.example"], 9090),
    }


@pytest.mark.parametrize("shape", WorkloadShape)
def test_a_templates_objects_match_the_api_schema_and_the_restricted_standard(shape: WorkloadShape) -> None:
    objects = rendered(with_template(replace(CONTENTS, shape=shape), pull_secret=LOGIN, command="x"))
    for each in objects:
        kubernetes_validate.validate(each, "1.34", strict=True)
    assert [violations(pod) for pod in pods(objects)] == [[]]


def test_a_login_is_an_image_pull_secret_of_the_leases_own() -> None:
    objects = rendered(with_template(pull_secret=LOGIN))
    (secret,) = (each for each in of_kind(objects, "Secret") if each["type"] == "kubernetes.io/dockerconfigjson")
    (pod,) = pods(objects)
    assert pod["spec"]["imagePullSecrets"] == [{"name": secret["metadata"]["name"]}]
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "u-anchor"
    assert json.loads(b64decode(secret["data"][".dockerconfigjson"]))["auths"]["ghcr.io"]["password"] == "hunter2"


def test_docker_hub_has_the_name_that_runtimes_know() -> None:
    (secret,) = (
        each
        for each in of_kind(rendered(with_template(pull_secret=replace(LOGIN, server="docker.io"))), "Secret")
        if each["type"] == "kubernetes.io/dockerconfigjson"
    )
    assert list(json.loads(b64decode(secret["data"][".dockerconfigjson"]))["auths"]) == ["https://index.docker.io/v1/"]


def test_the_stored_digest_names_a_logins_version_and_not_its_password() -> None:
    lease = with_template(pull_secret=LOGIN)
    other_password = with_template(pull_secret=replace(LOGIN, password="guess"))
    other_version = with_template(pull_secret=replace(LOGIN, version=3))
    assert spec_hash(other_password, PLUGIN) == spec_hash(lease, PLUGIN) != spec_hash(other_version, PLUGIN)
    assert "hunter2" not in json.dumps(anchor(lease, PLUGIN))


def test_without_its_password_the_login_in_the_cluster_is_left_alone() -> None:
    unread = with_template(pull_secret=RegistryLogin("sec_1", 2))
    assert all(each["type"] == "Opaque" for each in of_kind(rendered(unread), "Secret"))
    assert spec_hash(unread, PLUGIN) == spec_hash(with_template(pull_secret=LOGIN), PLUGIN)
