"""Uninstall the product from a cluster, with an administrator's rights.

Nothing of ours runs on, and nothing is stuck. Volumes belong to tenants: a namespace with volumes
stays, unless they are to be deleted too.
"""

from collections.abc import Iterator

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.api_errors import ObjectMissing
from broker.provisioners.kubernetes.client.kinds import (
    BY_NAME,
    CONFIG_MAP,
    NAMESPACE,
    POD,
    VOLUME_CLAIM,
    Kind,
    ObjectRef,
    object_ref,
)
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, ObjectMeta, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.cluster_install import SECRET, TOKEN, ObjectResult
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.observe.object_lookup import CONTROLLERS, find_all_leases
from broker.provisioners.kubernetes.render import cluster
from broker.provisioners.kubernetes.render.image_prepulls import NAMESPACE as IMAGES_NAMESPACE
from ports import clock

DEVICE_CLASS = BY_NAME["resource.k8s.io/v1", "DeviceClass"]
POLL_S = 0.5


def leases_in_cluster(api: KubernetesApi, installation: str) -> list[str]:
    """Return the spec names of an installation that exist in a cluster."""
    return sorted(find_all_leases(api, installation))


def remove_projects(api: KubernetesApi, installation: str, *, with_volumes: bool) -> Iterator[ObjectResult]:
    """Delete all projects of an installation and release their pods until all are gone."""
    ours = f"{labels.OURS_SELECTOR},{labels.INSTALLATION}={installation}"
    spaces = [meta.name for meta in _list_labelled(api, NAMESPACE, ours)]
    kept_namespaces = {meta.namespace for meta in _list_labelled(api, VOLUME_CLAIM, f"{ours},{labels.VOLUME}")} - (
        set(spaces) if with_volumes else set()
    )
    for kind in (CONFIG_MAP, *CONTROLLERS, POD):
        for meta in _list_labelled(api, kind, f"{ours},{labels.LEASE}"):
            if meta.namespace in kept_namespaces:
                yield _delete(api, ObjectRef(kind, meta.name, meta.namespace))
    for name in spaces:
        yield (
            ObjectResult(ObjectRef(NAMESPACE, name), "kept")
            if name in kept_namespaces
            else _delete(api, ObjectRef(NAMESPACE, name))
        )
    _release_all_pods(api, f"{ours},{labels.LEASE}")


def _release_all_pods(api: KubernetesApi, marks: str) -> None:
    """Release pods until none is left: their ends are no longer needed.

    Wait for the anchors, too: an anchor is deleted after everything it owns, so nothing is created or
    collected any more once it is gone.
    """
    while there := (pods := _list_labelled(api, POD, marks)) + _list_labelled(api, CONFIG_MAP, marks):
        for meta in pods:
            if labels.METERING_FINALIZER in meta.finalizers:
                ref = ObjectRef(POD, meta.name, meta.namespace)
                api.let_go(ref, finalizer=labels.METERING_FINALIZER, uid=meta.uid)
        if clock.monotonic() + POLL_S >= api.deadline:
            names = ", ".join(f"{meta.namespace}/{meta.name}" for meta in there[:3])
            still = (
                f"{len(pods)} pods are still shutting down" if pods else f"{len(there)} leases are still being deleted"
            )
            raise ClusterUnreachable(f"{still}, {names} among them; check their nodes, then run it again")
        clock.sleep(POLL_S)


def uninstall_cluster(
    api: KubernetesApi, driver: SliceDriver, installation: str, *, namespace: str = cluster.NAMESPACE
) -> Iterator[ObjectResult]:
    """Delete what was installed for all leases, unless another installation needs it.

    Another installation needs it when it has projects there. The namespace stays: the product itself
    may run in it.
    """
    if others := _list_labelled(api, NAMESPACE, f"{labels.OURS_SELECTOR},{labels.INSTALLATION}!={installation}"):
        yield from (ObjectResult(ObjectRef(NAMESPACE, meta.name), "another's") for meta in others)
        return
    # Found by label: the caller may name another driver, or know fewer models, than at installation.
    ours = f"{labels.MANAGED_BY}={labels.MANAGER_NAME}"
    yield from (_delete(api, ObjectRef(DEVICE_CLASS, meta.name)) for meta in _list_labelled(api, DEVICE_CLASS, ours))
    yield _delete(api, ObjectRef(NAMESPACE, IMAGES_NAMESPACE))
    made = [object_ref(each) for each in cluster.cluster_objects(driver, image="", namespace=namespace)]
    made = [ref for ref in made if ref.kind is not DEVICE_CLASS]
    for ref in (ObjectRef(SECRET, TOKEN, namespace), *reversed(made)):
        if ref.kind is not NAMESPACE:
            yield _delete(api, ref)


def _list_labelled(api: KubernetesApi, kind: Kind, marks: str) -> list[ObjectMeta]:
    try:
        items, _ = api.list_all(kind, labels=marks, metadata_only=True)
    except ObjectMissing:
        return []
    return [decode(item, ClusterObjectHeader).metadata for item in items]


def _delete(api: KubernetesApi, ref: ObjectRef) -> ObjectResult:
    body = api.get(ref)
    if body is None:
        return ObjectResult(ref, "missing")
    api.delete(ref, uid=decode(body, ClusterObjectHeader).metadata.uid)
    return ObjectResult(ref, "deleted")
