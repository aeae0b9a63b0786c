"""Check of a lease's GPUs from inside its pods, while its node is short of devices.

A device plugin counts devices and does not say whose is missing. NVIDIA's container runtime gives every pod nvidia-smi,
which fails where a GPU of the pod has failed.
"""

import re
from collections.abc import Iterable
from contextlib import suppress

from broker.provisioners.base import ClusterUnreachable, CommandFailed
from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.objects import ObservedPod
from broker.provisioners.kubernetes.client.pod_exec import run_in_pod
from broker.provisioners.kubernetes.render.pod import CONTAINER_NAME

COMMAND = ("nvidia-smi", "-L")
# What nvidia-smi prints where a GPU does not answer. That it is missing or may not be run tells nothing.
GPU_GONE = re.compile(
    r"GPU is lost|No devices (were )?found|Unable to determine the device handle|GPU requires reset|Unknown Error",
    re.IGNORECASE,
)


def find_device_failure(connection: ApiConnection, pods: Iterable[ObservedPod]) -> str:
    """Return what nvidia-smi says of a failed GPU in one of the pods; empty if it says nothing."""
    for pod in pods:
        if pod.status.phase == "Running" and (said := _ask_pod(connection, pod)):
            return said
    return ""


def _ask_pod(connection: ApiConnection, pod: ObservedPod) -> str:
    where = {"namespace": pod.metadata.namespace, "pod": pod.metadata.name, "container": CONTAINER_NAME}
    with suppress(ClusterUnreachable):  # a tool that hangs proves nothing either
        try:
            run_in_pod(connection, command=COMMAND, **where)
        except CommandFailed as failed:
            if GPU_GONE.search(str(failed)):
                return str(failed)
    return ""
