"""What the broker may do in a cluster, written from the list of what it does. Nothing of it is a wildcard."""

from collections import defaultdict
from dataclasses import dataclass

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.spec import Manifest

RBAC = "rbac.authorization.k8s.io"
APPLY = ("create", "patch")  # server-side apply of something that may not be there yet
FOLLOW = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Use:
    """One kind of object and what we do with it."""

    group: str
    kinds: str
    verbs: tuple[str, ...]
    why: str


BROKER = (
    Use("", "namespaces", (*APPLY, *FOLLOW), "one for each project; seen when somebody deletes it by hand"),
    Use("", "limitranges", APPLY, "what a container gets that asks for nothing"),
    Use("", "resourcequotas", (*APPLY, *FOLLOW), "a project's ceilings, and how much of them is used"),
    Use("", "serviceaccounts", APPLY, "the account without rights that pods run under"),
    Use("", "configmaps", (*APPLY, *FOLLOW, "delete"), "anchors: deleting one takes its lease down"),
    Use("", "secrets", APPLY, "keys of a lease: written, never asked for, gone with the anchor"),
    Use("", "services", APPLY, "the doors of a lease"),
    Use("", "persistentvolumeclaims", (*APPLY, *FOLLOW, "delete"), "volumes, which outlive their leases"),
    Use(
        "", "pods", (*FOLLOW, "patch", "delete"), "what is seen of a lease; patched to let it go when metered"
    ),
    Use("", "nodes", (*FOLLOW, "patch"), "what there is to sell; patched to cut cards anew"),
    Use("apps", "deployments", (*APPLY, *FOLLOW), "leases that serve"),
    Use("apps", "statefulsets", (*APPLY, *FOLLOW), "interactive leases"),
    Use("batch", "jobs", (*APPLY, *FOLLOW), "leases that end with their command"),
    Use("coordination.k8s.io", "leases", FOLLOW, "each node's last proof of life"),
    Use("gateway.networking.k8s.io", "httproutes", APPLY, "how people come in where there is a gateway"),
    Use("networking.k8s.io", "ingresses", APPLY, "how people come in where there is none"),
    Use("networking.k8s.io", "networkpolicies", APPLY, "the walls around a project"),
    Use("resource.k8s.io", "resourceclaims", (*APPLY, *FOLLOW), "slices by DRA"),
    Use("resource.k8s.io", "resourceslices", FOLLOW, "what there is to sell by DRA"),
)
REAPER = (Use("", "configmaps", ("delete", "list"), "anchors that nobody pays for any longer"),)


def role(name: str, uses: tuple[Use, ...]) -> Manifest:
    """Return the ClusterRole that allows exactly these uses, kinds with the same verbs in one rule."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for use in uses:
        alike[use.group, tuple(sorted(use.verbs))].append(use.kinds)
    rules = [
        {"apiGroups": [group], "resources": sorted(kinds), "verbs": list(verbs)}
        for (group, verbs), kinds in sorted(alike.items())
    ]
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": _meta(name), "rules": rules}


def binding(name: str, *, account: str, namespace: str) -> Manifest:
    """Return what gives a ClusterRole to the service account of the same purpose."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _meta(name),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def account(name: str, *, namespace: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**_meta(name), "namespace": namespace}}


def _meta(name: str) -> Manifest:
    return {"labels": {labels.MANAGED_BY: labels.US}, "name": name}
