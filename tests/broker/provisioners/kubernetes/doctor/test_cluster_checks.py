"""Outcomes of the cluster checks."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from broker.provisioners.kubernetes.client.objects import ResourceSlice
from broker.provisioners.kubernetes.doctor import examination
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome, ClusterFinding
from broker.provisioners.kubernetes.doctor.snapshot import (
    ClusterCredentialInfo,
    ClusterSnapshot,
    PodResources,
    ServerVersion,
    UnreadablePart,
)
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.tolerations import parse_tolerations
from tests.broker.provisioners.kubernetes.doctor.healthy_cluster import (
    GROUPS,
    LAYOUTS,
    METRICS,
    NOW,
    POLICY,
    WELL,
    cordoned,
    exporter,
    manifest,
    node,
    plain_node,
    tainted,
    with_allocatable,
    with_nodes,
)
from tests.controlplane.devices import published
from tests.controlplane.nodes import L40S, GpuNode

OK, WARN, BAD, UNKNOWN = CheckOutcome.OK, CheckOutcome.WARN, CheckOutcome.BAD, CheckOutcome.UNKNOWN
SHARED = GpuNode(replicas=4, sharing="time-slicing")
CUT = GpuNode(cut=1, mig={"1g.10gb": 7})
SINGLE = GpuNode(gpus=1, cut=1, mig={"1g.10gb": 7}, strategy="single")
MIG = [msgspec.convert(each, ResourceSlice) for each in published("gpu-1")]
OURS = manifest("mig-1g.10gb.gpubroker.dev")
PUBLISHED, PUBLISHED_ELSEWHERE = (
    msgspec.convert({"metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "nodeName": name}}, ResourceSlice)
    for name in ("gpu-1", "gpu-9")
)
DRA = manifest("gpu.nvidia.com", spec={"extendedResourceName": "nvidia.com/gpu"})


def changed(**changes: Any) -> ClusterSnapshot:
    return replace(WELL, **changes)


def with_allowed_namespace(namespace: str, **changes: Any) -> ClusterSnapshot:
    """Return the cluster with an allowed namespace in which a pod runs."""
    values = {
        "allowed_namespaces": (namespace,),
        "namespaces": [manifest(namespace)],
        "pods": [pod(namespace)],
        **changes,
    }
    return changed(**values)


def host_network_pod(namespace: str) -> PodResources:
    """Return a pod in the network of its node."""
    made = pod(namespace)
    made.spec.host_network = True
    return made


def without(*kinds: str, state: object = None) -> dict[str, Any]:
    return {"installed": {name: state if name.startswith(kinds) else True for name in WELL.installed}}


def may(*rights: rbac.AccessRight, allowed: bool) -> dict[str, Any]:
    return {"rights": {**WELL.rights, **dict.fromkeys(rights, allowed)}}  # type: ignore[dict-item]


def pod(
    namespace: str, *, ours: bool = False, phase: str = "Running", resource: str = "nvidia.com/gpu"
) -> PodResources:
    marks = {"app.kubernetes.io/managed-by": "gpubroker"} if ours else {}
    asks = {"resources": {"limits": {resource: "1"}}}
    return msgspec.convert(
        {
            "metadata": {"name": "pod", "namespace": namespace, "labels": marks},
            "spec": {"nodeName": "gpu-1", "containers": [asks]},
            "status": {"phase": phase},
        },
        PodResources,
    )


def daemon_pod(cpu: str, memory: str = "3Gi") -> PodResources:
    """Return a pod of a daemon set on gpu-1."""
    owner = {"kind": "DaemonSet", "name": "exporter", "controller": True}
    asks = {"resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return msgspec.convert(
        {
            "metadata": {"name": "exporter-x", "namespace": "monitoring", "ownerReferences": [owner]},
            "spec": {"nodeName": "gpu-1", "containers": [asks]},
            "status": {"phase": "Running"},
        },
        PodResources,
    )


def plugin(text: str) -> dict[str, Any]:
    return manifest("plugin", data={"config.yaml": text})


def layouts_in(namespace: str) -> dict[str, Any]:
    """Return the legal layouts of a node in another namespace."""
    return {**LAYOUTS, "metadata": {**LAYOUTS["metadata"], "namespace": namespace}}


def mig_reads(name: str) -> dict[str, Any]:
    return {**POLICY, "spec": {"migManager": {"config": {"name": name}}}}


def hook(name: str, kinds: str = "pods") -> dict[str, Any]:
    return manifest(name, webhooks=[{"rules": [{"resources": [kinds]}]}])


NO_POD_RIGHT, MAY_EXEC = rbac.AccessRight("list", "", "pods"), rbac.AccessRight("create", "", "pods", "exec")
TABLE: list[tuple[str, ClusterSnapshot, CheckOutcome, str]] = [
    ("server-version", changed(version=ServerVersion(git_version="v1.33.9+rke2r1")), BAD, "v1.33.9"),
    ("server-version", changed(version=ServerVersion(git_version="v1.34.0")), OK, "v1.34.0"),
    ("server-version", changed(version=ServerVersion(git_version="nightly")), UNKNOWN, "nightly"),
    ("kubelet-versions", with_nodes(), UNKNOWN, "no nodes"),
    ("apis-served", changed(groups=GROUPS - {"batch/v1"}), BAD, "batch/v1"),
    ("clock", changed(skew=timedelta(seconds=-8)), WARN, "8 s behind"),
    ("clock", changed(skew=timedelta(seconds=90)), BAD, "90 s ahead of"),
    ("clock", changed(skew=UnreadablePart("responses have no Date header")), UNKNOWN, "no Date"),
    ("round-trip", changed(round_trip=timedelta(milliseconds=420)), WARN, "420 ms"),
    ("same-cluster", changed(uid="99999999-1"), BAD, "4f0c7d9a was registered"),
    ("same-cluster", changed(known_uid=""), OK, "first time"),
    ("credentials", changed(credential=ClusterCredentialInfo("token", NOW)), BAD, "expired on"),
    (
        "credentials",
        changed(credential=ClusterCredentialInfo("token", NOW + timedelta(days=3))),
        WARN,
        "2026-11-24",
    ),
    (
        "credentials",
        changed(credential=ClusterCredentialInfo("certificate", NOW + timedelta(days=300))),
        OK,
        "2027",
    ),
    ("credentials", changed(credential=ClusterCredentialInfo("program")), WARN, "exec plugin"),
    ("rights", changed(**may(NO_POD_RIGHT, allowed=False)), BAD, "list pods"),
    ("rights", changed(rights=UnreadablePart("could not be read")), UNKNOWN, "could not be read"),
    (
        "rights-to-examine",
        changed(**may(rbac.list_rights(rbac.DOCTOR_RULES)[0], allowed=False)),
        WARN,
        "cannot read",
    ),
    ("rights-too-wide", changed(**may(MAY_EXEC, allowed=True)), WARN, "create pods/exec"),
    ("priority-classes", changed(**without("PriorityClass")), BAD, "gpub-ondemand"),
    ("priority-classes", changed(**without("PriorityClass", state=False)), WARN, "outdated"),
    (
        "priority-classes",
        changed(**without("PriorityClass", state=UnreadablePart("denied"))),
        UNKNOWN,
        "denied",
    ),
    ("admission-policies", changed(**without("ValidatingAdmissionPolicy ")), BAD, "gpub-pods"),
    (
        "admission-policies",
        changed(**without("ValidatingAdmissionPolicyBinding", state=False)),
        WARN,
        "gpub-pods",
    ),
    ("admission-works", changed(policies_refuse=False), BAD, "NodePort"),
    (
        "admission-works",
        changed(policies_refuse=UnreadablePart("no project has a namespace")),
        UNKNOWN,
        "no project",
    ),
    ("reaper", changed(**without("CronJob")), WARN, "gpubroker-reaper"),
    ("gpu-nodes", with_nodes(plain_node()), BAD, "none of 1 nodes"),
    ("gpu-nodes", with_nodes(node(gpu__product=None)), OK, "1 of 1"),
    (
        "gpu-nodes",
        with_nodes(plain_node("gpu-1"), driver="dra", slices=[PUBLISHED]),
        OK,
        "ResourceSlices",
    ),
    ("operator", changed(gpu_clusters=[manifest("all")]), BAD, "both"),
    ("operator", changed(gpu_clusters=[manifest("all")], cluster_policies=[]), BAD, "GPUCluster"),
    ("operator", changed(gpu_clusters=[manifest("all")], cluster_policies=[], driver="dra"), OK, "GPUCluster"),
    ("operator", changed(cluster_policies=[]), WARN, "neither"),
    (
        "operator-ready",
        changed(cluster_policies=[{**POLICY, "status": {"state": "notReady"}}]),
        WARN,
        "notReady",
    ),
    ("operator-ready", changed(cluster_policies=[]), UNKNOWN, "no GPU operator"),
    ("mig-strategy", with_nodes(node(mig__strategy="single")), WARN, "single on 1"),
    ("mig-strategy", with_nodes(node(mig__strategy="none")), WARN, "none on 1"),
    ("mig-strategy", with_nodes(node(what=GpuNode(gpu=L40S), mig__strategy="none")), OK, "none on 1"),
    ("mig-strategy", changed(driver="dra"), OK, "not applicable"),
    ("sellable-gpus", with_nodes(node(gpu__product="NVIDIA-NEXT-9000")), OK, "8 GPUs can be sold"),
    ("sellable-gpus", with_nodes(node(gpu__product=None)), WARN, "labels name no GPU product"),
    ("sellable-gpus", changed(inventory=[DiscoveredNode("gpu-1")]), BAD, "no GPU"),
    ("sellable-gpus", changed(inventory=[DiscoveredNode("gpu-1", refusal="It offers both.")]), WARN, "It offers both."),
    ("devices-agree", with_nodes(node(what=CUT)), OK, "agree"),
    (
        "devices-agree",
        with_nodes(node(**{"mig-1g__10gb__count": "9"})),
        BAD,
        "labels 9 of 1g.10gb but offers 0",
    ),
    ("devices-agree", with_nodes(node(what=GpuNode(gpus=0))), BAD, "offers no devices"),
    ("devices-agree", changed(driver="hami"), OK, "not applicable"),
    ("sharing", with_nodes(node(what=SHARED)), OK, "one replica"),
    (
        "sharing",
        with_nodes(node(what=replace(SHARED, renamed=False))),
        WARN,
        "called nvidia.com/gpu on gpu-1",
    ),
    (
        "sharing",
        with_nodes(node(what=SHARED), config_maps=[plugin("renameByDefault: true")]),
        WARN,
        "several",
    ),
    (
        "sharing",
        with_nodes(node(what=SHARED), config_maps=[plugin("failRequestsGreaterThanOne: true")]),
        OK,
        "one replica",
    ),
    ("sharing", with_nodes(node(what=replace(CUT, replicas=2, sharing="mps"))), BAD, "replicas on gpu-1"),
    ("sharing", with_nodes(node(what=replace(CUT, replicas=2, renamed=False))), BAD, "replicas on gpu-1"),
    ("sharing", with_nodes(node(what=replace(SINGLE, replicas=2, renamed=False))), BAD, "replicas on gpu-1"),
    ("sharing", with_nodes(node(what=CUT)), OK, "no GPU is shared"),
    ("resource-names", changed(slices=[PUBLISHED], device_classes=[DRA]), BAD, "nvidia.com/gpu of gpu-1 is offered"),
    ("resource-names", changed(slices=[PUBLISHED_ELSEWHERE], device_classes=[DRA]), OK, "one source"),
    ("resource-names", changed(device_classes=[DRA]), OK, "one source"),
    ("mig-layouts", changed(config_maps=[METRICS]), WARN, "gpu-1"),
    ("mig-layouts", with_nodes(node(what=GpuNode(gpu=L40S)), config_maps=[]), OK, "not applicable"),
    ("mig-layouts", changed(config_maps=[layouts_in("nvidia")]), WARN, "gpu-1"),
    ("mig-reads", changed(), OK, "gpubroker-mig"),
    ("mig-reads", changed(cluster_policies=[mig_reads("default-mig-parted-config")]), WARN, "default-mig"),
    ("mig-reads", changed(cluster_policies=[manifest("cluster-policy")]), WARN, "their own list"),
    ("mig-reads", changed(cluster_policies=[]), UNKNOWN, "no ClusterPolicy"),
    ("mig-reads", with_nodes(node(what=GpuNode(gpu=L40S)), cluster_policies=[]), OK, "not applicable"),
    ("mig-reads", changed(cluster_policies=[], driver="dra"), OK, "not applicable"),
    ("mig-state", with_nodes(node(mig__config__state="failed")), BAD, "failed on gpu-1"),
    ("mig-state", with_nodes(node(mig__config__state="pending")), WARN, "in progress on gpu-1"),
    ("dra-driver", changed(driver="dra"), BAD, "no ResourceSlices"),
    ("dra-driver", changed(driver="dra", groups=GROUPS - {"resource.k8s.io/v1"}), BAD, "not served"),
    ("dra-driver", changed(driver="dra", slices=[PUBLISHED]), OK, "1 nodes"),
    (
        "dra-driver",
        changed(driver="dra", slices=[PUBLISHED], unpublished={"gpu-1": ["1g.10gb+me"]}),
        WARN,
        "gpu-1 do not publish 1g.10gb+me",
    ),
    ("device-classes", changed(driver="dra", slices=MIG, device_classes=[DRA]), BAD, "published profiles 1g.10gb"),
    (
        "device-classes",
        changed(driver="dra", slices=MIG, device_classes=[DRA, OURS]),
        WARN,
        "published profiles 1g.20gb",
    ),
    ("device-classes", changed(driver="dra"), BAD, "gpu.nvidia.com"),
    (
        "device-classes",
        changed(driver="dra", device_classes=[DRA, manifest("mig-1g.gpubroker.dev")]),
        OK,
        "1 of the broker",
    ),
    ("hami", changed(driver="hami"), BAD, "no webhook"),
    ("hami", changed(driver="hami", webhooks=[hook("hami-webhook")]), OK, "not tested"),
    ("network-policies", changed(daemon_sets=[manifest("kube-flannel-ds")]), BAD, "Flannel"),
    ("network-policies", changed(daemon_sets=[]), UNKNOWN, "no network"),
    ("network-policies", changed(network=True, daemon_sets=[manifest("kube-flannel")]), OK, "made a pod unreachable"),
    ("network-policies", changed(network=False), BAD, "reachable against its policy"),
    (
        "network-policies",
        changed(network=UnreadablePart("the test could not run: no")),
        UNKNOWN,
        "could not run",
    ),
    ("pod-security", changed(pod_security=False), BAD, "was accepted"),
    (
        "webhooks",
        changed(webhooks=[hook("istio"), hook("hami-x"), hook("other", "services")]),
        WARN,
        "istio may",
    ),
    ("quotas", changed(quotas=[]), UNKNOWN, "no project"),
    ("quotas", changed(quotas=[manifest("gpub-hard", "gt-1")]), BAD, "gt-1"),
    ("nodes-ready", with_nodes(node(ready="Unknown")), WARN, "gpu-1"),
    ("nodes-ready", with_nodes(), BAD, "no nodes"),
    ("heartbeats", changed(heartbeats={}), BAD, "gpu-1"),
    ("heartbeats", changed(heartbeats={"gpu-1": NOW - timedelta(minutes=5)}), WARN, "gpu-1"),
    ("cordoned", with_nodes(cordoned()), WARN, "cordoned: gpu-1"),
    ("taints", with_nodes(tainted("sku"), tolerations=parse_tolerations("sku:NoSchedule")), OK, "no taint"),
    ("taints", with_nodes(tainted("team")), WARN, "gpu-1 (team)"),
    ("taints", with_nodes(tainted("node.kubernetes.io/not-ready")), OK, "no taint"),
    ("taints", with_nodes(tainted("team", "PreferNoSchedule")), OK, "no taint"),
    ("node-resources", changed(), OK, "1 GPU nodes"),
    ("node-resources", changed(pods=[daemon_pod("2500m")]), OK, "request up to 2.5 CPUs and 3 GiB memory (gpu-1)"),
    ("node-resources", changed(pods=[daemon_pod("1000")]), WARN, "less than 1 CPU"),
    ("node-resources", with_nodes(with_allocatable(cpu="4", memory="1Ti")), WARN, "less than 1 CPU"),
    ("node-resources", with_nodes(with_allocatable(cpu="128", memory="12Gi")), WARN, "gpu-1"),
    ("node-resources", with_nodes(with_allocatable()), UNKNOWN, "no allocatable CPU or memory: gpu-1"),
    ("storage", changed(storage_classes=[manifest("slow")]), WARN, "no default"),
    ("storage", changed(storage_classes=[*WELL.storage_classes] * 2), WARN, "more than one default"),  # type: ignore[misc]
    ("ingress", changed(ingress_classes=[]), WARN, "neither"),
    ("ingress", changed(groups=GROUPS | {"gateway.networking.k8s.io/v1"}), OK, "Gateway"),
    ("allowed-namespaces", changed(), OK, "no access is configured"),
    ("allowed-namespaces", changed(allowed_namespaces=("ingress-nginx",)), BAD, "do not exist: ingress-nginx"),
    (
        "allowed-namespaces",
        with_allowed_namespace("edge", ingress="ingress/public"),
        BAD,
        "IngressClass public does not exist",
    ),
    ("allowed-namespaces", with_allowed_namespace("edge", ingress="ingress/nginx"), OK, "allowed: edge"),
    ("allowed-namespaces", with_allowed_namespace("edge", ingress="gateway/edge/main"), OK, "allowed: edge"),
    (
        "allowed-namespaces",
        with_allowed_namespace("edge", ingress="gateway/edge/main", pods=[]),
        WARN,
        "no pods run in the allowed namespaces edge",
    ),
    (
        "allowed-namespaces",
        with_allowed_namespace("edge", ingress="gateway/edge/main", pods=[host_network_pod("edge")]),
        WARN,
        "host network",
    ),
    ("leftovers", changed(accounted=frozenset()), WARN, "l-1-g1"),
    ("leftovers", changed(accounted=None), UNKNOWN, "1 leases"),
    ("leftovers", changed(accounted=None, ours={}), OK, "no objects"),
    ("held-pods", changed(ours={"l-1-g1": NOW - timedelta(minutes=6)}), WARN, "l-1-g1"),
    ("held-pods", changed(ours={"l-1-g1": NOW - timedelta(minutes=4)}), OK, "no ended pod"),
    ("namespaces", changed(namespaces=[manifest("gt-9", status={"phase": "Terminating"})]), BAD, "gt-9"),
    ("namespaces", changed(namespaces=[manifest("old", status={"phase": "Terminating"})]), WARN, "old"),
    ("foreign-pods", changed(pods=[pod("research")]), WARN, "research/pod"),
    (
        "foreign-pods",
        changed(
            pods=[
                pod("research", ours=True),
                pod("gpu-operator"),
                pod("research", phase="Succeeded"),
                pod("research", resource="cpu"),
            ]
        ),
        OK,
        "no other pods",
    ),
    ("dcgm-exporter", changed(daemon_sets=[]), WARN, "no dcgm-exporter"),
    ("dcgm-exporter", changed(daemon_sets=[exporter(ready=0)]), WARN, "0 of 1"),
    ("dcgm-labels", changed(daemon_sets=[]), UNKNOWN, "no dcgm-exporter"),
    (
        "dcgm-labels",
        changed(daemon_sets=[exporter(DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID="false")]),
        WARN,
        "ENABLE_POD_UID",
    ),
    ("dcgm-metrics", changed(daemon_sets=[]), UNKNOWN, "no dcgm-exporter"),
    ("dcgm-metrics", changed(config_maps=[LAYOUTS]), WARN, "default"),
    (
        "dcgm-metrics",
        changed(config_maps=[manifest("m", data={"l": "DCGM_FI_PROF_SM_ACTIVE,\n# DCGM_EXP_XID_ERRORS_COUNT"})]),
        WARN,
        "DCGM_EXP_XID_ERRORS_COUNT",
    ),
    ("dcgm-sharing", with_nodes(node(what=SHARED)), OK, "every pod"),
    (
        "dcgm-sharing",
        with_nodes(node(what=SHARED), daemon_sets=[exporter(KUBERNETES_VIRTUAL_GPUS="")]),
        WARN,
        "not set",
    ),
]


def finding_of(snapshot: ClusterSnapshot, name: str) -> ClusterFinding:
    return next(each for each in examination.examine_cluster(snapshot) if each.name == name)


@pytest.mark.parametrize(("name", "snapshot", "outcome", "words"), TABLE)
def test_each_check_reports_the_expected_outcome(
    name: str, snapshot: ClusterSnapshot, outcome: CheckOutcome, words: str
) -> None:
    found = finding_of(snapshot, name)
    assert (found.outcome, words in found.seen) == (outcome, True), found
    assert bool(found.fix) == (outcome is not OK)


def test_an_outdated_kubelet_is_named_in_the_finding() -> None:
    old = node("old")
    old.status.node_info.kubelet_version = "v1.31.2"
    assert "old" in finding_of(with_nodes(old), "kubelet-versions").seen


def test_a_node_with_whole_and_shared_gpus_is_a_warning() -> None:
    mixed = node()
    mixed.status.allocatable["nvidia.com/gpu.shared"] = "4"
    assert finding_of(with_nodes(mixed), "resource-names").outcome is WARN


def test_a_valid_cluster_has_only_ok_findings() -> None:
    findings = examination.examine_cluster(WELL)
    assert [each for each in findings if each.outcome is not OK] == []
    assert examination.has_no_bad_finding(findings)


def test_all_checks_have_unique_names_and_are_tested() -> None:
    names = [check.name for check in examination.CHECKS]
    assert len(names) == len(set(names)) >= 40
    assert {name for name, *_ in TABLE} == set(names)


def test_an_unreadable_check_is_unknown_and_never_ok() -> None:
    blind = ClusterSnapshot(
        driver="device_plugin",
        now=NOW,
        credential=ClusterCredentialInfo("token"),
        version=ServerVersion(git_version="v1.36"),
    )
    outcomes = {each.name: each.outcome for each in examination.examine_cluster(blind)}
    well = [name for name, outcome in outcomes.items() if outcome is OK]
    # What these look at came with the kubeconfig and the first answer, or is no matter for this driver.
    assert sorted(well) == sorted(["reachable", "server-version", "credentials", *NOTHING_TO_READ])
    assert len(blind.unreadable_parts()) > 20


NOTHING_TO_READ = [
    "dra-driver",
    "device-classes",
    "hami",
    "allowed-namespaces",
    "priority-classes",
    "admission-policies",
    "reaper",
]
ERRORS = {
    "SSLError: CERTIFICATE_VERIFY_FAILED": "certificate-authority-data",
    "NameResolutionError: Failed to resolve": "DNS",
    "NewConnectionError: Connection refused": "port",
    "ConnectTimeoutError: timed out": "firewall",
    "Unauthorized": "revoked",
    "the kubeconfig cannot be used": "user of this kubeconfig",
    "something nobody foresaw": "kubectl",
}


@pytest.mark.parametrize(("error", "fix"), ERRORS.items())
def test_an_unreachable_server_is_one_finding_with_a_fix(error: str, fix: str) -> None:
    (only,) = examination.examine_cluster(changed(version=UnreadablePart(error)))
    assert (only.name, only.outcome) == ("reachable", BAD)
    assert error in only.seen
    assert fix in only.fix
    assert not examination.has_no_bad_finding([only])
