"""The smallest objects that a test of the cluster itself needs."""

from tests.controlplane.api import Object
from tests.controlplane.stages import SCRIPT

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(
    name: str,
    namespace: str,
    *,
    node: str = "",
    script: str = "",
    restart: str = "Never",
    image: str = "registry.example/box:1",
    limits: dict[str, str] | None = None,
    claims: dict[str, str] | None = None,
) -> Object:
    """Return a permitted pod; `claims` name its ResourceClaims."""
    container: Object = {
        "name": "main",
        "image": image,
        "securityContext": RESTRICTED,
        "resources": {"limits": limits or {}, "claims": [{"name": use} for use in claims or {}]},
    }
    spec: Object = {"restartPolicy": restart, "containers": [container]}
    if claims:
        spec["resourceClaims"] = [{"name": use, "resourceClaimName": claim} for use, claim in claims.items()]
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    notes = {SCRIPT: script} if script else {}
    metadata = {"name": name, "namespace": namespace, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def state(pod: Object) -> Object:
    """Return the state of a pod's first container: {} before its kubelet saw it."""
    containers = pod["status"].get("containerStatuses", [])
    return dict(containers[0]["state"]) if containers else {}


def reason(pod: Object) -> str:
    """Return why the first container waits or ended; empty while it runs."""
    return next((str(how.get("reason", "")) for how in state(pod).values() if isinstance(how, dict)), "")
