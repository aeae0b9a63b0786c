"""A real API server accepts our objects and enforces our policies."""

import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.lease import namespace_of
from broker.provisioners.kubernetes.render.spec import ProjectSpec
from tests.broker.provisioners.kubernetes.lease_specs import DRIVERS, EVERY_TEMPLATE, LEASE, PLUGIN, pods
from tests.cluster.installed import install, make, open_project, some_id
from tests.controlplane.api import Api, Object, Refused
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.cluster
HERE = "gpubroker.dev/"
# A pod that every policy accepts; the tests break one rule each.
PLAIN: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe"},
    "spec": {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "main",
                "image": "python:3",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": "tenant",
    },
}


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Api:
    install(control_plane.api, PLUGIN)
    return control_plane.api


@pytest.fixture(scope="module")
def project(api: Api) -> Iterator[ProjectSpec]:
    project = open_project(api, PLUGIN)
    place = f"/api/v1/namespaces/{names.namespace_name(project.project_id, project.slug)}"
    refused = {"spec": {**PLAIN["spec"], "nodeName": "none"}, "metadata": PLAIN["metadata"]}
    end = time.monotonic() + 60
    while time.monotonic() < end:  # policies are enforced a moment after they are written
        try:
            api.say("POST", f"{place}/pods", {**PLAIN, **refused}, dryRun="All")
        except Refused as no:
            if "ValidatingAdmissionPolicy" in no.words:
                break
        time.sleep(0.05)
    else:
        raise AssertionError("the policies are not enforced")
    yield project
    api.delete(place)


def try_pod(api: Api, project: ProjectSpec, pod: Object) -> Object:
    place = names.namespace_name(project.project_id, project.slug)
    return api.say("POST", f"/api/v1/namespaces/{place}/pods", pod, dryRun="All")


def broken(**spec: Any) -> Object:
    pod = deepcopy(PLAIN)
    pod["spec"].update(spec)
    return pod


def test_a_plain_pod_is_admitted(api: Api, project: ProjectSpec) -> None:
    assert try_pod(api, project, PLAIN)["metadata"]["name"] == "probe"


GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
UNWANTED = {
    "GPUs without a lease": (
        broken(containers=[{**PLAIN["spec"]["containers"][0], **GPU}]),
        "must have the label gpubroker.dev/lease",
    ),
    "GPUs without a lease for a container that only begins": (
        broken(initContainers=[{**PLAIN["spec"]["containers"][0], "name": "first", **GPU}]),
        "must have the label gpubroker.dev/lease",
    ),
    "claims without a lease": (
        broken(resourceClaims=[{"name": "c", "resourceClaimName": "c"}]),
        "must have the label gpubroker.dev/lease",
    ),
    "a foreign priority": (broken(priorityClassName="system-node-critical"), "priority class must be one of"),
    "another scheduler": (broken(schedulerName="mine"), "the scheduler must be default-scheduler"),
    "a node of one's choice": (broken(nodeName="gpu-1"), "the scheduler sets it"),
    "every taint tolerated": (broken(tolerations=[{"operator": "Exists"}]), "tolerations of all taints"),
    "a node being cut": (
        broken(tolerations=[{"key": f"{HERE}repartition", "operator": "Exists"}]),
        "tolerations of all taints",
    ),
    "another tenant's label": (
        {**PLAIN, "metadata": {"name": "probe", "labels": {f"{HERE}tenant": "ten_other"}}},
        "the label gpubroker.dev/tenant of a pod must match its namespace",
    ),
    "another project's label": (
        {**PLAIN, "metadata": {"name": "probe", "labels": {f"{HERE}project": "prj_other"}}},
        "the label gpubroker.dev/project of a pod must match its namespace",
    ),
    "a folder of the host": (
        broken(volumes=[{"name": "host", "hostPath": {"path": "/"}}]),
        "hostPath volumes are not allowed",
    ),
    "the host's network": (broken(hostNetwork=True), "host namespaces are not allowed"),
    "privilege": (
        broken(containers=[{**PLAIN["spec"]["containers"][0], "securityContext": {"privileged": True}}]),
        "privileged containers are not allowed",
    ),
}


@pytest.mark.parametrize("what", UNWANTED)
def test_the_api_server_refuses_privileged_pods(what: str, api: Api, project: ProjectSpec) -> None:
    pod, words = UNWANTED[what]
    with pytest.raises(Refused) as refused:
        try_pod(api, project, pod)
    others = ("PodSecurity", "disallowed by cluster policy")  # policies of the server itself that came first
    assert any(each in refused.value.words for each in (words, *others))


@pytest.mark.parametrize("what", ["a folder of the host", "the host's network"])
def test_our_admission_policy_applies_although_pod_security_is_disabled(
    what: str, api: Api, project: ProjectSpec
) -> None:
    place = names.namespace_name(project.project_id, project.slug)
    label, pod = "pod-security.kubernetes.io/enforce", deepcopy(UNWANTED[what][0])
    api.patch(f"/api/v1/namespaces/{place}", {"metadata": {"labels": {label: "privileged"}}})
    try:
        end = time.monotonic() + 60
        said = "PodSecurity"
        while "PodSecurity" in said and time.monotonic() < end:  # it learns a moment later of a namespace's label
            with pytest.raises(Refused) as refused:
                try_pod(api, project, pod)
            said = refused.value.words
    finally:
        api.patch(f"/api/v1/namespaces/{place}", {"metadata": {"labels": {label: "restricted"}}})
    assert UNWANTED[what][1] in said


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer", "ExternalName"])
def test_tenants_cannot_create_externally_reachable_services(kind: str, api: Api, project: ProjectSpec) -> None:
    place = names.namespace_name(project.project_id, project.slug)
    spec = {"type": kind, "ports": [{"port": 80}], "externalName": "evil.example"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "out"}, "spec": spec}
    with pytest.raises(Refused) as refused:
        api.say("POST", f"/api/v1/namespaces/{place}/services", service, dryRun="All")
    assert "only Services of type ClusterIP" in refused.value.words or "exceeded quota" in refused.value.words


def test_our_policies_do_not_apply_to_foreign_namespaces(api: Api, namespace: str) -> None:
    pod = broken(schedulerName="mine", serviceAccountName="default")
    assert api.say("POST", f"/api/v1/namespaces/{namespace}/pods", pod, dryRun="All")


def test_the_policies_apply_to_our_rendered_pods_and_accept_them(api: Api, project: ProjectSpec) -> None:
    for lease in EVERY_TEMPLATE.values():
        mine = replace(lease, project=project, lease_id=some_id("lse"), metered=False)
        for pod in pods(make(api, PLUGIN, mine)):
            bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {**pod["metadata"], "name": "p"}}
            assert try_pod(api, project, {**bare, "spec": pod["spec"]})


@pytest.mark.parametrize("template", EVERY_TEMPLATE)
@pytest.mark.parametrize("driver", DRIVERS)
def test_applying_the_same_lease_twice_changes_nothing(
    driver: str, template: str, api: Api, project: ProjectSpec
) -> None:
    lease = replace(EVERY_TEMPLATE[template], project=project, lease_id=some_id("lse"), metered=False, volumes=())
    first, again = make(api, DRIVERS[driver], lease), make(api, DRIVERS[driver], lease)
    assert len(first) > 1
    specs = [[each.get("spec", each.get("data")) for each in made] for made in (first, again)]
    assert specs[0] == specs[1]
    written = [[each["metadata"].get("generation", 1) for each in made] for made in (first, again)]
    assert written[0] == written[1]


def test_deleting_the_anchor_deletes_all_objects_of_the_lease(api: Api, project: ProjectSpec) -> None:
    lease = replace(LEASE, project=project, lease_id=some_id("lse"), metered=False)
    made = make(api, PLUGIN, lease)
    api.delete(api.path(made[0]), propagationPolicy="Foreground")
    for each in made:
        api.until_gone(api.path(each))
    assert namespace_of(lease) in api.path(made[0])


@pytest.fixture(scope="module")
def broker(api: Api, control_plane: ControlPlane) -> Api:
    """Return a client with exactly the rights of the broker's role."""
    binding = rbac.cluster_role_binding("gpubroker-tests", account="", namespace="")
    subject = {"apiGroup": rbac.RBAC, "kind": "User", "name": "broker-of-the-tests"}
    role = {**binding["roleRef"], "name": "gpubroker"}
    api.apply({**binding, "subjects": [subject], "roleRef": role})
    return Api(control_plane.kubeconfig("broker-of-the-tests"))


def may(
    api: Api, verb: str, group: str, kinds: str, *, subresource: str = "", name: str = "", namespace: str = ""
) -> bool:
    values = {"verb": verb, "group": group, "resource": kinds, "subresource": subresource}
    values |= {"name": name, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {name: value for name, value in values.items() if value}},
    }
    answer = api.say("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def test_the_broker_role_allows_every_listed_rule(broker: Api) -> None:
    refused = [
        (verb, use.kinds)
        for use in rbac.BROKER_RULES
        for verb in use.verbs
        if not may(broker, verb, use.group, use.kinds, name=use.name)
    ]
    assert refused == []


@pytest.mark.parametrize("right", rbac.FORBIDDEN_RIGHTS, ids=str)
def test_the_broker_role_allows_no_forbidden_right(right: rbac.AccessRight, broker: Api) -> None:
    assert not may(broker, right.verb, right.group, right.kinds, subresource=right.subresource)


def bound_to_pods(namespace: str) -> Object:
    return rbac.pod_access_binding(namespace, "broker-of-the-tests")


def test_the_broker_reads_logs_in_namespaces_of_projects_only(
    broker: Api, api: Api, project: ProjectSpec, namespace: str
) -> None:
    home = names.namespace_name(project.project_id, project.slug)
    assert not may(broker, "get", "", "pods", subresource="log", namespace=home)
    broker.apply(bound_to_pods(home))
    end = time.monotonic() + 30  # a binding counts a moment after it is written
    while not may(broker, "get", "", "pods", subresource="log", namespace=home) and time.monotonic() < end:
        time.sleep(0.05)
    assert may(broker, "get", "", "pods", subresource="log", namespace=home)
    assert not may(broker, "get", "", "pods", subresource="log", namespace=namespace)
    assert not may(broker, "get", "", "pods", subresource="log", namespace="kube-system")


@pytest.mark.parametrize("elsewhere", ["kube-system", "default"])
def test_the_broker_cannot_give_itself_access_to_pods_elsewhere(
    broker: Api, project: ProjectSpec, elsewhere: str
) -> None:
    with pytest.raises(Refused) as refused:
        broker.apply(bound_to_pods(elsewhere))
    assert "may be bound in namespaces of projects only" in refused.value.words


def test_the_broker_cannot_bind_any_other_role(broker: Api, project: ProjectSpec) -> None:
    home = names.namespace_name(project.project_id, project.slug)
    binding = bound_to_pods(home)
    binding["roleRef"]["name"] = "cluster-admin"
    binding["metadata"]["name"] = "gpub-admin"
    with pytest.raises(Refused) as refused:
        broker.apply(binding)
    assert "attempting to grant RBAC permissions not currently held" in refused.value.words


def test_a_foreign_namespace_cannot_be_made_one_of_a_project(broker: Api, project: ProjectSpec, namespace: str) -> None:
    ours = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "gpubroker"}}}
    with pytest.raises(Refused) as refused:
        broker.patch(f"/api/v1/namespaces/{namespace}", ours)
    assert "an existing namespace cannot become that of a project" in refused.value.words
    home = names.namespace_name(project.project_id, project.slug)
    assert broker.patch(f"/api/v1/namespaces/{home}", ours)
