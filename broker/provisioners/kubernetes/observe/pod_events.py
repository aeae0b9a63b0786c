"""Kubernetes events of a lease's pods, in plain words.

Reasons are those of kubernetes pkg/kubelet/events/event.go and of the default scheduler. Names of nodes and
objects are left out: they mean nothing to a tenant.
"""

import re
from collections.abc import Callable

from broker.provisioners.kubernetes.client.objects import ClusterEvent

MAX_DETAIL = 200
PULLED_IN = re.compile(r'^Successfully pulled image "(?P<image>[^"]+)" in (?P<time>[0-9hms.]+)')
QUOTED_IMAGE = re.compile(r'image "(?P<image>[^"]+)"', re.IGNORECASE)
NODES_COUNTED = re.compile(r"^\d+/\d+ nodes are available: ")

FIXED_TEXTS = {
    "Scheduled": "A node was assigned.",
    "Created": "The container was created.",
    "Started": "The container started.",
    "SuccessfulAttachVolume": "The volume was attached.",
    "Preempting": "It is removed for a pod of higher priority.",
    "TaintManagerEviction": "It is removed from its node because of a taint.",
    "NodeNotReady": "Its node is not ready.",
}
DETAILED_TEXTS = {
    "FailedScheduling": "No node accepts it yet",
    "FailedMount": "A volume cannot be mounted yet",
    "FailedAttachVolume": "The volume cannot be attached yet",
    "FailedCreatePodSandBox": "Its node cannot create the container's network yet",
    "Unhealthy": "A health check failed",
    "Evicted": "Its node removed it",
    "FailedKillPod": "The container cannot be stopped yet",
    "OOMKilling": "The node ran out of memory",
    "UnexpectedAdmissionError": "Its node refused it",
}


def describe_event(event: ClusterEvent) -> str:
    """Return what an event means for the lease, in one sentence."""
    if describe := DESCRIBED.get(event.reason):
        return describe(event.message)
    if event.reason in FIXED_TEXTS:
        return FIXED_TEXTS[event.reason]
    return _join(DETAILED_TEXTS.get(event.reason, event.reason), event.message)


def _pulling(message: str) -> str:
    return f"Pulling the image{_image_in(message)}."


def _pulled(message: str) -> str:
    if found := PULLED_IN.match(message):
        return f"Pulled the image {found['image']} in {found['time']}."
    return f"The image{_image_in(message)} is already on the node."


def _failed(message: str) -> str:
    """Return the text of `Failed`, which a kubelet uses for images and for containers."""
    subject = "The image cannot be pulled" if "pull" in message.lower() else "The container cannot be started"
    return _join(subject, message.removeprefix("Error: "))


def _backing_off(message: str) -> str:
    if "pull" in message.lower():
        return f"The image{_image_in(message)} cannot be pulled; it is tried again later."
    return "The program ended again and again; it is restarted after a pause."


def _killing(message: str) -> str:
    if "liveness" in message:
        return "The container is restarted: it failed its health check."
    return "The container is being stopped."


def _image_in(message: str) -> str:
    found = QUOTED_IMAGE.search(message)
    return f" {found['image']}" if found else ""


def _join(text: str, detail: str) -> str:
    detail = NODES_COUNTED.sub("", " ".join(detail.split())).rstrip(".")[:MAX_DETAIL]
    return f"{text}: {detail}." if detail else f"{text}."


DESCRIBED: dict[str, Callable[[str], str]] = {
    "Pulling": _pulling,
    "Pulled": _pulled,
    "Failed": _failed,
    "BackOff": _backing_off,
    "Killing": _killing,
}
