"""Install what leases need in a cluster, with an administrator's rights.

Also create the broker's own account and kubeconfig.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.api_errors import ObjectInvalid, ObjectMissing
from broker.provisioners.kubernetes.client.kinds import BY_NAME, Manifest, ObjectRef, object_ref
from broker.provisioners.kubernetes.client.kubeconfig import kubeconfig_of
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.cluster import NAME, NAMESPACE, cluster_objects
from ports import clock

SECRET = BY_NAME["v1", "Secret"]
TOKEN = f"{NAME}-token"
TOKEN_WITHIN_S, POLL_S = 10.0, 0.2


@dataclass(frozen=True, slots=True)
class ObjectResult:
    """What happened to one object."""

    ref: ObjectRef
    outcome: str  # made, changed, as it was, deleted …


def install_cluster(
    api: KubernetesApi, driver: SliceDriver, *, image: str, namespace: str = NAMESPACE
) -> list[ObjectResult]:
    """Apply all cluster objects; a second call changes nothing."""
    return [_apply_object(api, each) for each in cluster_objects(driver, image=image, namespace=namespace)]


def _apply_object(api: KubernetesApi, manifest: Manifest) -> ObjectResult:
    ref = object_ref(manifest)
    before = _read_object(api, ref)
    try:
        after = api.apply(manifest, manager=labels.INSTALLER, force=True)
    except ObjectInvalid:
        if before is None or ref.kind.name != "PriorityClass":
            raise
        # Its value is immutable, so it is replaced; existing pods keep the value they were created with.
        api.delete(ref, uid=before.metadata.uid, propagation="Background")
        api.apply(manifest, manager=labels.INSTALLER, force=True)
        return ObjectResult(ref, "changed")
    if before is None:
        return ObjectResult(ref, "made")
    return ObjectResult(ref, "unchanged" if _object_version(before) == _object_version(after) else "changed")


def _object_version(thing: ClusterObjectHeader) -> tuple[int, str]:
    """Return a version of an object that changes only when its specification does.

    Objects that the server does not count generations of are compared by resource version.
    """
    meta = thing.metadata
    return (meta.generation, "" if meta.generation else meta.resource_version)


def _read_object(api: KubernetesApi, ref: ObjectRef) -> ClusterObjectHeader | None:
    try:
        body = api.get(ref)
    except ObjectMissing:
        return None
    return decode(body, ClusterObjectHeader) if body else None


def broker_kubeconfig(
    api: KubernetesApi, administrators: Mapping[str, Any], *, namespace: str = NAMESPACE
) -> dict[str, Any]:
    """Return a kubeconfig of the broker's own account.

    Its rights are narrow, it does not expire, and deleting one Secret revokes it.
    """
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "annotations": {"kubernetes.io/service-account.name": NAME},
            "name": TOKEN,
            "namespace": namespace,
        },
        "type": "kubernetes.io/service-account-token",
    }
    api.apply(secret, manager=labels.INSTALLER, force=True)
    given = _wait_for_token(api, ObjectRef(SECRET, TOKEN, namespace))
    cluster = {
        name: value
        for name, value in administrators["clusters"][0]["cluster"].items()
        if name in ("server", "certificate-authority-data", "tls-server-name", "proxy-url")
    }
    return kubeconfig_of(cluster, {"token": given})


def _wait_for_token(api: KubernetesApi, ref: ObjectRef) -> str:
    """Wait until the cluster has written a token into a Secret."""
    end = clock.monotonic() + TOKEN_WITHIN_S
    while clock.monotonic() < end:
        body = api.get(ref)
        token = (msgspec.json.decode(body).get("data") or {}).get("token", "") if body else ""
        if token:
            return base64.b64decode(token).decode()
        clock.sleep(POLL_S)
    raise ClusterUnreachable(f"{ref} got no token within {TOKEN_WITHIN_S:.0f} s; check the controller manager")
