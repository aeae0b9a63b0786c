"""Messages of the Kubernetes scheduler, in plain words.

A message counts all nodes of its cluster and names their taints, which are no tenant's business. A pod of a lease is
pinned to one node: what is said of others, that they do not match, says nothing.
"""

import re
from enum import StrEnum

MAX_REASONS = 3
OTHERS = re.compile(r"[Pp]reemption: .*", re.DOTALL)
NODES_COUNTED = re.compile(r"^\d+/\d+ nodes are available(: |$)")
INSUFFICIENT = re.compile(r"Insufficient (?P<resource>[\w/-]+(?:\.[\w/-]+)*)")
# The plain words of each part of a message; parts that are not listed are left out.
PARTS = {
    "taint": "its node has a taint",
    "were unschedulable|was unschedulable|is unschedulable": "its node is cordoned",
    "Too many pods": "its node runs as many pods as it may",
    "cannot allocate all claims|resourceclaim": "its devices cannot be allocated",
    "free ports": "a port of it is in use on its node",
    "(?i)affinity conflict|PersistentVolume's node affinity|volume zone": "its volume cannot be reached from its node",
    "(?i)max volume count": "its node has as many volumes as it may",
    "(?i)free storage": "there is too little storage for its volume",
    "(?i)persistent volumes to bind": "no storage fits its volume on its node",
    "(?i)unbound immediate": "its volume is not provisioned yet",
    "(?i)binding volumes|VolumeBinding": "its volume could not be bound in time",
    "(?i)ReadWriteOncePod": "another pod uses its volume",
    "(?i)persistentvolumeclaim.* not found|non-existent|storageclass": "its volume has no storage in its cluster",
    "(?i)persistentvolumeclaim.* being deleted": "its volume is being deleted",
    "enough resources": "its node has too little free",
}


class StorageProblem(StrEnum):
    """What a volume needs before its pod can start."""

    OTHER_NODE = "other_node"  # it cannot be used from this node, or not now
    TIME = "time"  # no other node would help


OTHER_NODE = re.compile(
    "volume node affinity conflict|PersistentVolume's node affinity|max volume count|no available volume zone"
    "|no available disk|enough free storage|persistent volumes to bind",
    re.IGNORECASE,
)
TIME = re.compile(
    "unbound immediate|binding volumes|VolumeBinding|persistentvolumeclaim|non-existent p|storageclass", re.IGNORECASE
)


def find_storage_problem(message: str) -> StorageProblem | None:
    """Return what a pod's volume needs; None if the scheduler names no volume."""
    if OTHER_NODE.search(message):
        return StorageProblem.OTHER_NODE
    return StorageProblem.TIME if TIME.search(message) else None


def plain_reasons(message: str) -> str:
    """Return why a pod is not scheduled, without node counts, names and taints."""
    text = NODES_COUNTED.sub("", OTHERS.sub("", message))
    found = [f"not enough {each['resource']} is free" for each in INSUFFICIENT.finditer(text)]
    found += [plain for pattern, plain in PARTS.items() if re.search(pattern, text)]
    return ", ".join(list(dict.fromkeys(found))[:MAX_REASONS])
