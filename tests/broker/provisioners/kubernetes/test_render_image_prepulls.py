"""DaemonSets that keep images on GPU nodes."""

import kubernetes_validate

from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.image_prepulls import (
    NAMESPACE,
    prepull_daemon_set,
    prepull_name,
    prepull_setup_objects,
)
from broker.provisioners.kubernetes.tolerations import parse_tolerations
from tests.broker.provisioners.kubernetes.lease_specs import of_kind
from tests.broker.provisioners.kubernetes.restricted_standard import violations

IMAGE = "ghcr.io/acme/comfy:1"
FOUND = prepull_daemon_set(IMAGE, tolerations=parse_tolerations("sku=gpu:NoSchedule"), installation="ins_1")


def test_its_pods_match_the_api_schema_and_the_restricted_standard() -> None:
    kubernetes_validate.validate(FOUND, "1.34", strict=True)
    assert violations(FOUND["spec"]["template"]) == []


def test_its_pods_request_nothing_and_see_no_gpu() -> None:
    pod = FOUND["spec"]["template"]["spec"]
    for container in (*pod["initContainers"], *pod["containers"]):
        assert "resources" not in container
        assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert pod["priorityClassName"] == "gpub-warm"  # it preempts nothing, and leases come first
    assert {each["key"] for each in pod["tolerations"]} == {"nvidia.com/gpu", "sku"}


def test_the_image_runs_a_program_that_does_not_come_from_it() -> None:
    pod = FOUND["spec"]["template"]["spec"]
    (tool,), (image,) = pod["initContainers"], pod["containers"]
    assert image["image"] == IMAGE
    assert image["command"][0] == tool["command"][-1] == "/gpubroker-tool/busybox"


def test_each_image_has_its_own_name() -> None:
    assert prepull_name(IMAGE) != prepull_name("ghcr.io/acme/comfy:2")
    assert prepull_name(IMAGE) == FOUND["metadata"]["name"]


def test_the_broker_may_change_daemon_sets_in_that_namespace_alone() -> None:
    setup = prepull_setup_objects(account="gpubroker", namespace="gpubroker-system")
    for each in setup:
        kubernetes_validate.validate(each, "1.34", strict=True)
    (role,) = of_kind(setup, "Role")
    assert role["metadata"]["namespace"] == NAMESPACE
    assert role["rules"] == [
        {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["create", "delete", "get", "patch"]}
    ]
    (binding,) = of_kind(setup, "RoleBinding")
    assert binding["subjects"][0] == {
        "kind": "ServiceAccount",
        "name": "gpubroker",
        "namespace": "gpubroker-system",
    }
    assert rbac.AccessRight("create", "apps", "daemonsets") in rbac.FORBIDDEN_RIGHTS
