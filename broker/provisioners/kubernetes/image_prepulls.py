"""Images kept on the GPU nodes of a cluster: requested, counted and given up."""

import msgspec

from broker.provisioners.base import ImagePresence, KeptImage
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.api_errors import ObjectMissing
from broker.provisioners.kubernetes.client.kinds import DAEMON_SET, POD, ObjectRef
from broker.provisioners.kubernetes.client.objects import ApiStruct, ClusterObjectHeader, ObservedPod, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.render.image_prepulls import (
    IMAGE_LABEL,
    NAMESPACE,
    prepull_daemon_set,
    prepull_name,
)
from broker.provisioners.kubernetes.tolerations import parse_tolerations

INSTALL_AGAIN = f"the namespace {NAMESPACE} is missing; run manage.py kube_setup again, which creates it"


class DaemonSetStatus(ApiStruct):
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0


class CountedDaemonSet(ApiStruct):
    """A DaemonSet with its numbers of pods."""

    status: DaemonSetStatus = msgspec.field(default_factory=DaemonSetStatus)


def keep_image(api: KubernetesApi, kept: KeptImage, *, installation: str) -> ImagePresence:
    """Have every GPU node pull an image and keep it; return how many have it."""
    wanted = prepull_daemon_set(kept.image, tolerations=parse_tolerations(kept.tolerations), installation=installation)
    try:
        api.apply(wanted, manager=labels.PROJECTS)
    except ObjectMissing:
        return ImagePresence(0, 0, INSTALL_AGAIN)
    body = api.get(_reference(kept.image))
    status = decode(body, CountedDaemonSet).status if body else DaemonSetStatus()
    if status.number_ready >= status.desired_number_scheduled:
        return ImagePresence(status.desired_number_scheduled, status.number_ready)
    return ImagePresence(status.desired_number_scheduled, status.number_ready, _waiting_reason(api, kept.image))


def drop_image(api: KubernetesApi, kept: KeptImage) -> bool:
    """Give up an image, which nodes may then delete; return whether confirmed."""
    body = api.get(_reference(kept.image))
    if body is None:
        return True
    found = decode(body, ClusterObjectHeader).metadata
    if found.deletion_timestamp is None:
        api.delete(_reference(kept.image), uid=found.uid)
    return False


def _waiting_reason(api: KubernetesApi, image: str) -> str:
    """Return why a node does not have the image yet; empty while it is pulled."""
    pods, _ = api.list_all(POD, namespace=NAMESPACE, labels=f"{IMAGE_LABEL}={prepull_name(image)}")
    for pod in (decode(each, ObservedPod) for each in pods):
        for container in pod.status.container_statuses:
            waits = container.state.waiting
            if waits and waits.reason not in ("ContainerCreating", "PodInitializing"):
                return f"{pod.spec.node_name}: {waits.reason} {waits.message}".strip()[:300]
    return ""


def _reference(image: str) -> ObjectRef:
    return ObjectRef(DAEMON_SET, prepull_name(image), NAMESPACE)
