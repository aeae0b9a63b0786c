"""Kinds of objects that a cluster's agent watches, with selectors and types."""

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import (
    BY_NAME,
    CONFIG_MAP,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Kind,
)
from broker.provisioners.kubernetes.drivers.base import SliceDriver

ANCHOR_LABELS = f"{labels.OURS_SELECTOR},{labels.ROLE} in ({labels.ANCHOR_ROLE},{labels.PULSE_ROLE})"
ObjectType = type[
    objects.ObservedPod
    | objects.ClusterNode
    | objects.ClusterObjectHeader
    | objects.ResourceSlice
    | objects.ObservedQuota
    | objects.ResourceClaim
]
WATCHED_KINDS: dict[Kind, tuple[str, ObjectType]] = {
    POD: (labels.OURS_SELECTOR, objects.ObservedPod),
    CONFIG_MAP: (ANCHOR_LABELS, objects.ClusterObjectHeader),
    NODE: ("", objects.ClusterNode),
}
DEVICE_CLASSES = BY_NAME["resource.k8s.io/v1", "DeviceClass"]
PUBLISHED_KINDS: dict[Kind, tuple[str, ObjectType]] = {
    RESOURCE_SLICE: ("", objects.ResourceSlice),
    DEVICE_CLASSES: ("", objects.ClusterObjectHeader),
}  # for the driver that reads them
QUOTAS = BY_NAME["v1", "ResourceQuota"]
CLAIM_KINDS: dict[Kind, tuple[str, ObjectType]] = {RESOURCE_CLAIM: (labels.OURS_SELECTOR, objects.ResourceClaim)}
QUOTA_KINDS: dict[Kind, tuple[str, ObjectType]] = {QUOTAS: (labels.OURS_SELECTOR, objects.ObservedQuota)}


def kinds_to_watch(driver: SliceDriver) -> dict[Kind, tuple[str, ObjectType]]:
    """Return the kinds to watch where this driver requests slices."""
    watched = WATCHED_KINDS | QUOTA_KINDS | (PUBLISHED_KINDS if driver.reads_resource_slices else {})
    return watched | (CLAIM_KINDS if driver.uses_resource_claims else {})
