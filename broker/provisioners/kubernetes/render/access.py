"""What the broker may do in a cluster, written from the list of what it does. Nothing of it is a wildcard."""

from collections import defaultdict
from dataclasses import dataclass

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.spec import Manifest

RBAC = "rbac.authorization.k8s.io"
APPLY = ("create", "patch")  # server-side apply of something that may not be there yet
FOLLOW = ("get", "list", "watch")
# What goes with its anchor, or by itself where that went without it.
MADE = (*APPLY, "get", "list", "delete")


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One thing that somebody may or may not do in a cluster."""

    verb: str
    group: str
    kinds: str
    part: str = ""  # a subresource

    def __str__(self) -> str:
        kinds = f"{self.kinds}/{self.part}" if self.part else self.kinds
        return f"{self.verb} {kinds}" + (f" of {self.group}" if self.group else "")


@dataclass(frozen=True, slots=True)
class Use:
    """One kind of object and what we do with it."""

    group: str
    kinds: str
    verbs: tuple[str, ...]
    why: str


BROKER = (
    Use("", "namespaces", (*APPLY, "get", "list"), "one for each project; whether it is ours, and ending"),
    Use("", "limitranges", APPLY, "what a container gets that asks for nothing"),
    Use(
        "", "resourcequotas", (*APPLY, "list", "watch"), "a project's ceilings; whether somebody changed them"
    ),
    Use("", "serviceaccounts", APPLY, "the account without rights that pods run under"),
    Use("", "configmaps", (*APPLY, *FOLLOW, "delete"), "anchors: deleting one takes its lease down"),
    Use("", "secrets", APPLY, "keys of a lease: never listed; by name a patch tells what it holds"),
    Use("", "services", APPLY, "the doors of a lease"),
    Use("", "persistentvolumeclaims", ("create", "get", "delete"), "volumes, which outlive their leases"),
    Use("", "pods", ("delete", "list", "patch", "watch"), "what is seen of a lease; let go when it ended"),
    Use("", "events", ("list",), "why a controller cannot make a pod"),
    Use("", "nodes", (*FOLLOW, "patch"), "what there is to sell; patched to cut cards anew"),
    Use("apps", "deployments", MADE, "leases that serve"),
    Use("apps", "statefulsets", MADE, "interactive leases"),
    Use("batch", "jobs", MADE, "leases that end with their command"),
    Use("coordination.k8s.io", "leases", ("get", "list"), "each node's last proof of life"),
    Use("gateway.networking.k8s.io", "httproutes", APPLY, "how people come in where there is a gateway"),
    Use("networking.k8s.io", "ingresses", APPLY, "how people come in where there is none"),
    Use("networking.k8s.io", "networkpolicies", APPLY, "the walls around a project"),
    Use("resource.k8s.io", "deviceclasses", ("list", "watch"), "which slices can be asked for by DRA"),
    Use("resource.k8s.io", "resourceclaims", (*APPLY, *FOLLOW), "slices by DRA, and what they were given"),
    Use("resource.k8s.io", "resourceslices", ("list", "watch"), "what there is to sell by DRA"),
)
REAPER = (Use("", "configmaps", ("delete", "list"), "anchors that nobody pays for any longer"),)
# What an examination reads beside that; whoever leaves it out learns less from kube_doctor.
DOCTOR = (
    Use("admissionregistration.k8s.io", "mutatingwebhookconfigurations", ("list",), "what changes our pods"),
    Use("admissionregistration.k8s.io", "validatingadmissionpolicies", ("get",), "whether ours are current"),
    Use(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        ("get",),
        "whether ours are current",
    ),
    Use("apps", "daemonsets", ("list",), "which network, exporter and device plugin there are"),
    Use("batch", "cronjobs", ("get",), "whether the dead man's switch is current"),
    Use("networking.k8s.io", "ingressclasses", ("list",), "how people may come in"),
    Use("nvidia.com", "clusterpolicies", ("list",), "how NVIDIA's operator is set up"),
    Use("nvidia.com", "gpuclusters", ("list",), "how NVIDIA's operator is set up"),
    Use("resource.k8s.io", "deviceclasses", ("get",), "whether ours are current"),
    Use("scheduling.k8s.io", "priorityclasses", ("get",), "whether ours are current"),
    Use("storage.k8s.io", "storageclasses", ("list",), "where volumes come from"),
)
# What would let the broker, or whoever steals its credentials, out of its own walls.
NEVER = (
    Right("get", "", "secrets"),
    Right("list", "", "secrets"),
    Right("watch", "", "secrets"),
    Right("delete", "", "namespaces"),
    Right("delete", "", "nodes"),
    Right("create", "", "nodes"),
    Right("create", "", "pods"),
    Right("create", "", "pods", "exec"),
    Right("create", "", "pods", "attach"),
    Right("create", "", "pods", "portforward"),
    Right("get", "", "pods", "log"),
    Right("create", "", "pods", "binding"),
    Right("create", "", "serviceaccounts", "token"),
    Right("impersonate", "", "users"),
    Right("get", "", "nodes", "proxy"),
    Right("create", RBAC, "clusterroles"),
    Right("bind", RBAC, "clusterroles"),
    Right("escalate", RBAC, "clusterroles"),
    Right("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    Right("delete", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
    Right("approve", "certificates.k8s.io", "signers"),
    Right("create", "apps", "daemonsets"),
    Right("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    Right("*", "", "pods"),
)


def rights(uses: tuple[Use, ...]) -> list[Right]:
    """List every single right that some uses need."""
    return sorted({Right(verb, use.group, use.kinds) for use in uses for verb in use.verbs})


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
