"""Objects that keep images on GPU nodes: a namespace and a DaemonSet each.

Its pods request nothing and run as nobody. The container of the image sleeps with a program of ours, since not
every image has a shell, so the image is in use and the node does not delete it.
"""

import hashlib
from collections.abc import Sequence

from broker.domain.workloads.templates import USER_ID
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.spec import Manifest
from broker.provisioners.kubernetes.tolerations import GPU_TOLERATION, Toleration

NAME, NAMESPACE = "gpubroker-images", "gpubroker-images"
TOOL_IMAGE = "busybox:1.37-musl"  # statically linked: it runs in any image
TOOL_FOLDER, TOOL = "/gpubroker-tool", "/gpubroker-tool/busybox"
IMAGE_LABEL = f"{labels.DOMAIN}/image"
FOREVER_S = 2_147_483_647
# Labels of nodes that leases run on: by NVIDIA's and the node feature discovery, or of CPU nodes; one is enough.
NODE_LABELS = ("nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present", labels.SELL_CPU)
PREPULL_RULES = (
    rbac.AccessRule("apps", "daemonsets", ("create", "delete", "get", "patch"), "images that are kept on GPU nodes"),
)


def prepull_setup_objects(*, account: str, namespace: str) -> list[Manifest]:
    """Return the namespace of these DaemonSets, and the broker's rights in it."""
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("audit", "enforce", "warn")}
    # Without the label of projects' namespaces: it is none, and no policy for tenants applies.
    marks = {"app.kubernetes.io/name": NAME, **restricted}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": marks, "name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "no-gpus", "namespace": NAMESPACE},
            "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
        },
        rbac.namespaced_role(NAME, PREPULL_RULES, namespace=NAMESPACE),
        rbac.namespaced_role_binding(NAME, namespace=NAMESPACE, account=account, account_namespace=namespace),
    ]


def prepull_name(image: str) -> str:
    """Return the name of an image's DaemonSet."""
    return f"image-{hashlib.sha256(image.encode()).hexdigest()[:16]}"


def prepull_daemon_set(image: str, *, tolerations: Sequence[Toleration] = (), installation: str = "") -> Manifest:
    """Return the DaemonSet that keeps an image on every GPU node."""
    name = prepull_name(image)
    marks = {"app.kubernetes.io/name": NAME, IMAGE_LABEL: name}
    if installation:
        marks[labels.INSTALLATION] = installation  # ours: it holds nothing that could be sold
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"labels": marks, "name": name, "namespace": NAMESPACE},
        "spec": {
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": {IMAGE_LABEL: name}},
            "template": {"metadata": {"labels": marks}, "spec": _pod(image, tolerations)},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}, "type": "RollingUpdate"},
        },
    }


def _pod(image: str, tolerations: Sequence[Toleration]) -> Manifest:
    terms = [{"matchExpressions": [{"key": label, "operator": "In", "values": ["true"]}]} for label in NODE_LABELS]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
        "automountServiceAccountToken": False,
        "containers": [_container("image", image, [TOOL, "sleep", str(FOREVER_S)])],
        "enableServiceLinks": False,
        "initContainers": [_container("tool", TOOL_IMAGE, ["cp", "/bin/busybox", TOOL])],
        "priorityClassName": "gpub-warm",
        "securityContext": {
            "runAsGroup": USER_ID,
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 1,
        "tolerations": [each.manifest() for each in dict.fromkeys((GPU_TOLERATION, *tolerations))],
        "volumes": [{"emptyDir": {"sizeLimit": "16Mi"}, "name": "tool"}],
    }


def _container(name: str, image: str, command: list[str]) -> Manifest:
    return {
        "command": command,
        # Where NVIDIA's runtime is the default, an image's own variable would give it every GPU.
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "name": name,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"mountPath": TOOL_FOLDER, "name": "tool"}],
    }
