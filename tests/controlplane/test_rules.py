"""Refusals of a cluster by policy, quota and permission."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.controlplane.api import Api, Object, Refused
from tests.controlplane.manifests import pod
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane

ADMISSION = "admissionregistration.k8s.io/v1"


def policy(name: str, namespace: str) -> list[Object]:
    """Refuse pods without a label, in one namespace."""
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    expression = "'example/lease' in object.metadata.?labels.orValue({})"
    return [
        {
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules, "namespaceSelector": here},
                "validations": [{"expression": expression, "message": "every pod here belongs to a lease"}],
            },
        },
        {
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


def refusal(api: Api, manifest: Object) -> Refused | None:
    try:
        api.say("POST", api.path(manifest, named=False), manifest, dryRun="All")
    except Refused as refused:
        return refused
    return None


def test_an_admission_policy_refuses_with_its_message(control_plane: ControlPlane, namespace: str) -> None:
    api = control_plane.api
    for manifest in policy(namespace, namespace):
        api.create(manifest)
    bare, end = pod("bare", namespace), time.monotonic() + 90
    while (refused := refusal(api, bare)) is None and time.monotonic() < end:
        time.sleep(0.05)  # a policy holds some moments after it is written
    assert refused is not None
    assert refused.status == 422
    assert "every pod here belongs to a lease" in refused.words
    bare["metadata"]["labels"] = {"example/lease": "lse_1"}
    assert refusal(api, bare) is None
    for manifest in policy(namespace, namespace):
        api.delete(api.path(manifest))


def test_network_policies_are_accepted_and_kept(control_plane: ControlPlane, namespace: str) -> None:
    api = control_plane.api
    manifest = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "default-deny", "namespace": namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }
    api.apply(manifest)
    assert api.get(api.path(manifest))["spec"] == manifest["spec"]


def test_a_restricted_namespace_refuses_a_privileged_pod(control_plane: ControlPlane, namespace: str) -> None:
    api = control_plane.api
    enforce = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": enforce}})
    assert refusal(api, pod("fine", namespace)) is None
    bad = pod("bad", namespace)
    bad["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    refused = refusal(api, bad)
    assert refused is not None
    assert refused.status == 403
    assert "privileged" in refused.words


def test_a_resource_quota_is_not_exceeded_by_forty_concurrent_requests(
    control_plane: ControlPlane, gpu_nodes: Nodes, namespace: str
) -> None:
    api, node = control_plane.api, gpu_nodes.add(GpuNode(gpus=8))
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "hard", "namespace": namespace},
        "spec": {"hard": {"requests.nvidia.com/gpu": "7"}},
    }
    api.create(quota)
    api.until(api.path(quota), lambda seen: "hard" in seen["status"])

    def create(number: int) -> str:
        one = pod(f"pod-{number}", namespace, node=node, limits={"nvidia.com/gpu": "1"})
        try:
            api.create(one)
        except Refused as refused:
            return "exceeded quota" if "exceeded quota" in refused.words else str(refused)
        return "created"

    with ThreadPoolExecutor(8) as pool:
        answers = Counter(pool.map(create, range(40)))
    assert answers == {"created": 7, "exceeded quota": 33}


def change_refusal(api: Api, path: str, spec: Object) -> str:
    """Request another spec; return the refusal."""
    try:
        api.patch(path, {"spec": spec})
    except Refused as refused:
        if refused.status != 422:
            raise
        return refused.words
    return ""


def controller_of(kind: str, namespace: str, **spec: object) -> Object:
    """Return the controller object of a lease's pods."""
    marks = {"app": "held"}
    template = pod("held", namespace, restart="Never" if kind == "Job" else "Always")
    template["metadata"] = {"labels": marks}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": marks}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "held", "namespace": namespace},
        "spec": {
            **selector,
            **spec,
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }


def test_the_deadline_of_a_pod_can_only_shrink_and_that_of_a_job_may_grow(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Extended batches run on as Jobs, and sessions' ends are reliable."""
    api, one = control_plane.api, pod("held", namespace)
    one["spec"]["activeDeadlineSeconds"] = 600
    api.create(one)
    of_pod = api.path(one)
    assert change_refusal(api, of_pod, {"activeDeadlineSeconds": 300}) == ""
    for longer in (301, None):
        assert "activeDeadlineSeconds" in change_refusal(api, of_pod, {"activeDeadlineSeconds": longer})
    job = controller_of("Job", namespace, activeDeadlineSeconds=600)
    api.create(job)
    for seconds in (900, 300, 1200):
        assert change_refusal(api, api.path(job), {"activeDeadlineSeconds": seconds}) == ""
        assert api.get(api.path(job))["spec"]["activeDeadlineSeconds"] == seconds


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_stateful_sets_and_deployments_cannot_have_a_deadline(
    kind: str, control_plane: ControlPlane, namespace: str
) -> None:
    """The reaper must stop these once nobody pays."""
    made = controller_of(kind, namespace)
    control_plane.api.create(made)
    template = {"spec": {"activeDeadlineSeconds": 600}}
    assert "activeDeadlineSeconds" in change_refusal(
        control_plane.api, control_plane.api.path(made), {"template": template}
    )


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_a_user_without_rights_gets_a_403(control_plane: ControlPlane, namespace: str, verb: str) -> None:
    nobody = Api(control_plane.kubeconfig("nobody", "strangers"))
    with pytest.raises(Refused, match="nobody") as refused:
        nobody.say(verb, f"/api/v1/namespaces/{namespace}/pods")
    assert refused.value.status == 403


def test_a_service_account_token_authenticates_its_account(control_plane: ControlPlane, namespace: str) -> None:
    values = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    token = control_plane.api.say("POST", path, values)["status"]["token"]
    account = Api(control_plane.kubeconfig_of_token(token))
    with pytest.raises(Refused, match=f"system:serviceaccount:{namespace}:default"):
        account.get("/api/v1/nodes")
