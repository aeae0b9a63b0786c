"""Kubernetes kinds we use, with their API paths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind of object, as its server names it."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the URL path of a collection, or of one object in it."""
        group = f"/api/{self.api_version}" if self.api_version == "v1" else f"/apis/{self.api_version}"
        where = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        which = f"/{quote(name, safe='')}" if name else ""
        return f"{group}{where}/{self.plural}{which}"


@dataclass(frozen=True)
class ObjectRef:
    """Reference to one object: kind, namespace and name."""

    kind: Kind
    name: str
    namespace: str = ""

    @property
    def path(self) -> str:
        return self.kind.path(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}" if self.namespace else f"{self.kind.name} {self.name}"


NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
NODE = Kind("v1", "Node", "nodes", namespaced=False)
POD = Kind("v1", "Pod", "pods")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
STATEFUL_SET = Kind("apps/v1", "StatefulSet", "statefulsets")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
DAEMON_SET = Kind("apps/v1", "DaemonSet", "daemonsets")
JOB = Kind("batch/v1", "Job", "jobs")
EVENT = Kind("v1", "Event", "events")
VOLUME_CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
NODE_LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
RESOURCE_CLAIM = Kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
RESOURCE_SLICE = Kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", namespaced=False)

KINDS: tuple[Kind, ...] = (
    NAMESPACE,
    NODE,
    POD,
    CONFIG_MAP,
    STATEFUL_SET,
    DEPLOYMENT,
    DAEMON_SET,
    JOB,
    NODE_LEASE,
    Kind("v1", "Secret", "secrets"),
    Kind("v1", "Service", "services"),
    Kind("v1", "ServiceAccount", "serviceaccounts"),
    Kind("v1", "ResourceQuota", "resourcequotas"),
    Kind("v1", "LimitRange", "limitranges"),
    VOLUME_CLAIM,
    EVENT,
    Kind("apps/v1", "ReplicaSet", "replicasets"),
    Kind("batch/v1", "CronJob", "cronjobs"),
    Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    Kind("networking.k8s.io/v1", "Ingress", "ingresses"),
    Kind("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
    Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False),
    Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False),
    Kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Kind("rbac.authorization.k8s.io/v1", "Role", "roles"),
    Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    Kind(
        "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
    ),
    Kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        namespaced=False,
    ),
    RESOURCE_CLAIM,
    Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    RESOURCE_SLICE,
    Kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses", namespaced=False),
)
BY_NAME = {(kind.api_version, kind.name): kind for kind in KINDS}


def object_ref(manifest: Manifest) -> ObjectRef:
    """Return the reference of a manifest's object; KeyError for an unlisted kind."""
    kind = BY_NAME[manifest["apiVersion"], manifest["kind"]]
    meta = manifest["metadata"]
    return ObjectRef(kind, meta["name"], meta.get("namespace", ""))
