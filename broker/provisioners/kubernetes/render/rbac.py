"""RBAC of the broker in a cluster, derived from what it does; no wildcards."""

from collections import defaultdict
from dataclasses import dataclass

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.render.spec import Manifest

RBAC = "rbac.authorization.k8s.io"
POD_ACCESS = "gpubroker-pod-access"  # ClusterRole that is bound in the namespaces of projects
APPLY_VERBS = ("create", "patch")  # server-side apply of an object that may not exist yet
WATCH_VERBS = ("get", "list", "watch")
# Objects deleted with their anchor, or by us if the anchor was deleted without them.
OWNED_VERBS = (*APPLY_VERBS, "get", "list", "delete")


@dataclass(frozen=True, slots=True, order=True)
class AccessRight:
    """One action that may be allowed or forbidden in a cluster."""

    verb: str
    group: str
    kinds: str
    subresource: str = ""  # a subresource
    name: str = ""  # of the one object it is about; empty: all

    def __str__(self) -> str:
        kinds = f"{self.kinds}/{self.subresource}" if self.subresource else self.kinds
        kinds = f"{kinds} {self.name}" if self.name else kinds
        return f"{self.verb} {kinds}" + (f" of {self.group}" if self.group else "")


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One kind of object and what we do with it."""

    group: str
    kinds: str
    verbs: tuple[str, ...]
    why: str
    subresource: str = ""
    name: str = ""  # of the one object it is about; empty: all


BROKER_RULES = (
    AccessRule(
        "", "namespaces", (*APPLY_VERBS, "get", "list"), "one per project; read whether it is managed or terminating"
    ),
    AccessRule("", "limitranges", APPLY_VERBS, "default requests and limits of containers"),
    AccessRule("", "resourcequotas", (*APPLY_VERBS, "list", "watch"), "limits of a project; watched for changes"),
    AccessRule("", "serviceaccounts", APPLY_VERBS, "account without rights that pods run as"),
    AccessRule("", "configmaps", (*APPLY_VERBS, *WATCH_VERBS, "delete"), "anchors; deleting one removes its lease"),
    AccessRule(
        "", "secrets", APPLY_VERBS, "secrets of a lease; never listed; the response to a patch returns the content"
    ),
    AccessRule("", "services", APPLY_VERBS, "ports of a lease"),
    AccessRule("", "persistentvolumeclaims", ("create", "get", "delete"), "volumes, which outlive their leases"),
    AccessRule(
        "", "pods", ("delete", "list", "patch", "watch"), "state of a lease; the finalizer is removed after the end"
    ),
    AccessRule("", "events", ("list",), "why a controller cannot create a pod"),
    AccessRule("", "nodes", (*WATCH_VERBS, "patch"), "GPU inventory; patched to repartition GPUs"),
    AccessRule("apps", "deployments", OWNED_VERBS, "leases that serve endpoints"),
    AccessRule("apps", "statefulsets", OWNED_VERBS, "interactive leases"),
    AccessRule("batch", "jobs", OWNED_VERBS, "leases that end with their command"),
    AccessRule("coordination.k8s.io", "leases", ("get", "list"), "last heartbeat of each node"),
    AccessRule("gateway.networking.k8s.io", "httproutes", APPLY_VERBS, "routes to leases with a gateway"),
    AccessRule("networking.k8s.io", "ingresses", APPLY_VERBS, "routes to leases with an Ingress controller"),
    AccessRule("networking.k8s.io", "networkpolicies", APPLY_VERBS, "isolation of a project"),
    AccessRule(
        RBAC, "clusterroles", ("bind",), "to grant itself access to pods in its projects' namespaces", name=POD_ACCESS
    ),
    AccessRule(RBAC, "rolebindings", APPLY_VERBS, "the same; an admission policy refuses other namespaces"),
    AccessRule("resource.k8s.io", "deviceclasses", ("list", "watch"), "slices that can be requested through DRA"),
    AccessRule(
        "resource.k8s.io",
        "resourceclaims",
        ("create", *WATCH_VERBS),
        "slices requested through DRA, and their devices",
    ),
    AccessRule("resource.k8s.io", "resourceslices", ("list", "watch"), "GPU inventory of DRA"),
)
# What the broker may do with pods in the namespaces of its projects only.
POD_ACCESS_RULES = (
    AccessRule("", "pods", ("get",), "output of leases", subresource="log"),
    AccessRule(
        "", "pods", ("create", "get"), "checkpoint commands, web terminals and checks of GPUs", subresource="exec"
    ),
)
REAPER_RULES = (AccessRule("", "configmaps", ("delete", "list"), "anchors of leases after their paid time"),)
# What kube_doctor reads beside that; without these rights it reports less.
DOCTOR_RULES = (
    AccessRule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", ("list",), "webhooks that change pods"),
    AccessRule(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        ("get",),
        "whether the broker's objects are current",
    ),
    AccessRule(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        ("get",),
        "whether the broker's objects are current",
    ),
    AccessRule("apps", "daemonsets", ("list",), "installed network plugin, exporter and device plugin"),
    AccessRule("batch", "cronjobs", ("get",), "whether the reaper is current"),
    AccessRule("networking.k8s.io", "ingressclasses", ("list",), "available ingress classes"),
    AccessRule("nvidia.com", "clusterpolicies", ("list",), "configuration of NVIDIA's operator"),
    AccessRule("nvidia.com", "gpuclusters", ("list",), "configuration of NVIDIA's operator"),
    AccessRule("resource.k8s.io", "deviceclasses", ("get",), "whether the broker's objects are current"),
    AccessRule("scheduling.k8s.io", "priorityclasses", ("get",), "whether the broker's objects are current"),
    AccessRule("storage.k8s.io", "storageclasses", ("list",), "available storage classes"),
)
# What would let the broker, or a thief of its credentials, escape its limits.
FORBIDDEN_RIGHTS = (
    AccessRight("get", "", "secrets"),
    AccessRight("list", "", "secrets"),
    AccessRight("watch", "", "secrets"),
    AccessRight("delete", "", "namespaces"),
    AccessRight("delete", "", "nodes"),
    AccessRight("create", "", "nodes"),
    AccessRight("create", "", "pods"),
    AccessRight("create", "", "pods", "exec"),
    AccessRight("create", "", "pods", "attach"),
    AccessRight("create", "", "pods", "portforward"),
    AccessRight("get", "", "pods", "log"),
    AccessRight("create", "", "pods", "binding"),
    AccessRight("create", "", "serviceaccounts", "token"),
    AccessRight("impersonate", "", "users"),
    AccessRight("get", "", "nodes", "proxy"),
    AccessRight("create", RBAC, "clusterroles"),
    AccessRight("bind", RBAC, "clusterroles"),
    AccessRight("escalate", RBAC, "clusterroles"),
    AccessRight("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    AccessRight("delete", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
    AccessRight("approve", "certificates.k8s.io", "signers"),
    AccessRight("create", "apps", "daemonsets"),
    AccessRight("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    AccessRight("*", "", "pods"),
)


def list_rights(uses: tuple[AccessRule, ...]) -> list[AccessRight]:
    """Return every single right that some rules need."""
    return sorted(
        {AccessRight(verb, use.group, use.kinds, use.subresource, use.name) for use in uses for verb in use.verbs}
    )


def cluster_role(name: str, uses: tuple[AccessRule, ...]) -> Manifest:
    """Return the ClusterRole for these rules; kinds with equal verbs share one."""
    alike: dict[tuple[str, tuple[str, ...], str], list[str]] = defaultdict(list)
    for use in uses:
        kinds = f"{use.kinds}/{use.subresource}" if use.subresource else use.kinds
        alike[use.group, tuple(sorted(use.verbs)), use.name].append(kinds)
    rules = [
        {"apiGroups": [group], "resources": sorted(kinds), "verbs": list(verbs)}
        | ({"resourceNames": [name]} if name else {})
        for (group, verbs, name), kinds in sorted(alike.items())
    ]
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": _meta(name), "rules": rules}


def cluster_role_binding(name: str, *, account: str, namespace: str) -> Manifest:
    """Return the binding of a ClusterRole to a service account."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _meta(name),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def namespaced_role(name: str, uses: tuple[AccessRule, ...], *, namespace: str) -> Manifest:
    """Return the Role for these rules in one namespace."""
    role = cluster_role(name, uses)
    return {**role, "kind": "Role", "metadata": {**role["metadata"], "namespace": namespace}}


def namespaced_role_binding(name: str, *, namespace: str, account: str, account_namespace: str) -> Manifest:
    """Return the binding of a Role in its namespace to a service account of another."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {**_meta(name), "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": account_namespace}],
    }


def pod_access_binding(namespace: str, account: str) -> Manifest:
    """Return the binding that lets the broker's account reach the pods of one namespace.

    `account` is a user name as the cluster reports it.
    """
    kind, _, rest = account.partition(":serviceaccount:")
    home, _, name = rest.partition(":")
    subject = {"apiGroup": RBAC, "kind": "User", "name": account}
    if kind == "system" and name:
        subject = {"kind": "ServiceAccount", "name": name, "namespace": home}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {**_meta(POD_ACCESS), "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": POD_ACCESS},
        "subjects": [subject],
    }


def service_account(name: str, *, namespace: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**_meta(name), "namespace": namespace}}


def _meta(name: str) -> Manifest:
    return {"labels": {labels.MANAGED_BY: labels.MANAGER_NAME}, "name": name}
