"""Kubernetes events of a lease's pods, in plain words.

Reasons are those of kubernetes pkg/kubelet/events/event.go and of the default scheduler. Names of nodes, of other
tenants' objects and of the cluster's network are left out: they are no tenant's business.
"""

import re
from collections.abc import Callable

from broker.provisioners.kubernetes.client.objects import ClusterEvent
from broker.provisioners.kubernetes.observe.scheduler_messages import plain_reasons

MAX_DETAIL = 200
PULLED_IN = re.compile(r'^Successfully pulled image "(?P<image>[^"]+)" in (?P<time>[0-9hms.]+)')
QUOTED_IMAGE = re.compile(r'image "(?P<image>[^"]+)"', re.IGNORECASE)
# Texts of programs about the cluster: addresses, host names and paths of the node, ids of objects.
INTERNALS = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?::/\S*)?"  # IPv4, with the export of an NFS server
    r"|\[?\b[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){3,}\]?(?::\d+)?"  # IPv6
    r"|(?<![\w./-])(?!https?:)[\w.-]+:/[^\s\",]*"  # NFS by name
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:svc|local|internal)\b[\w.:-]*"
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
    r"|/(?:var/lib|run|proc)/[^\s\"':,]*",
    re.IGNORECASE,
)

FIXED_TEXTS = {
    "Scheduled": "A node was assigned.",
    "Created": "The container was created.",
    "Started": "The container started.",
    "SuccessfulAttachVolume": "The volume was attached.",
    "Preempting": "It is removed for a pod of higher priority.",
    "Preempted": "It was removed for a pod of higher priority.",
    "TaintManagerEviction": "It is removed from its node because of a taint.",
    "NodeNotReady": "Its node is not ready.",
    "NetworkNotReady": "The network of its node is not ready.",
    "SandboxChanged": "Its network was set up anew, so its container starts again.",
    "NotTriggerScaleUp": "The cluster adds no node for it.",
    "TriggeredScaleUp": "The cluster adds a node for it.",
    "FailedPrepareDynamicResources": "Its node cannot prepare its GPU yet.",
    "TopologyAffinityError": "Its node has no GPUs and CPUs of one NUMA node left for it.",
    "SMTAlignmentError": "Its node gives CPUs as whole cores only.",
    "FailedMount": "A volume cannot be mounted yet.",
    "FailedAttachVolume": "The volume cannot be attached yet.",
    "FailedMapVolume": "The volume cannot be attached yet.",
    "FailedCreatePodSandBox": "Its node cannot create the container's network yet.",
    "FailedPodSandBoxStatus": "Its node cannot read the container's state yet.",
    "FailedKillPod": "The container cannot be stopped yet.",
    "UnexpectedAdmissionError": "Its node could not allocate its GPU.",
}
DETAILED_TEXTS = {
    "Unhealthy": "A health check failed",
    "Evicted": "Its node removed it",
    "OOMKilling": "The node ran out of memory",
    "InspectFailed": "The image cannot be inspected",
    "ErrImageNeverPull": "The image cannot be used",
    "FailedPostStartHook": "A command after the start failed",
}
# Reasons of a kubelet that rejects a pod: its message counts what the node has and what others use.
REJECTIONS = re.compile(
    r"OutOf\S*|NodeAffinity|NodePorts|NodeName|TaintToleration|AppArmor|PodOSNotSupported|.*LimitExceeded"
)


def describe_event(event: ClusterEvent) -> str:
    """Return what an event means for the lease, in one sentence."""
    if describe := DESCRIBED.get(event.reason):
        return describe(event.message)
    if event.reason in FIXED_TEXTS:
        return FIXED_TEXTS[event.reason]
    if REJECTIONS.fullmatch(event.reason):
        return "Its node rejected it."
    if event.reason in DETAILED_TEXTS:
        return _join(DETAILED_TEXTS[event.reason], event.message)
    return f"{event.reason}."  # what its message names is unknown


def _not_scheduled(message: str) -> str:
    return _join("No node accepts it yet", plain_reasons(message))


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
    detail = INTERNALS.sub("…", " ".join(detail.split())).rstrip(".")[:MAX_DETAIL]
    return f"{text}: {detail}." if detail else f"{text}."


DESCRIBED: dict[str, Callable[[str], str]] = {
    "FailedScheduling": _not_scheduled,
    "Pulling": _pulling,
    "Pulled": _pulled,
    "Failed": _failed,
    "BackOff": _backing_off,
    "Killing": _killing,
}
