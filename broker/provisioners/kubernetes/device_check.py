"""Check of a lease's GPUs from inside its pods.

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
from ports import clock

COMMAND = ("/usr/bin/nvidia-smi", "-L")  # where NVIDIA's runtime mounts it, over what the image has there
CHECK_S = 3.0  # for all pods of a lease: a worker has claimed it meanwhile
# What nvidia-smi prints where a GPU does not answer. That it is missing or may not be run tells nothing.
GPU_GONE = re.compile(
    r"GPU is lost|No devices (were )?found|Unable to determine the device handle|GPU requires reset",
    re.IGNORECASE,
)


def find_device_failure(connection: ApiConnection, pods: Iterable[ObservedPod]) -> str:
    """Return what nvidia-smi says of a failed GPU in the pods, or nothing."""
    until = clock.monotonic() + CHECK_S
    for pod in pods:
        left_s = until - clock.monotonic()
        if left_s > 0 and pod.status.phase == "Running" and (said := _ask_pod(connection, pod, left_s)):
            return said
    return ""


def _ask_pod(connection: ApiConnection, pod: ObservedPod, answer_s: float) -> str:
    where = {"namespace": pod.metadata.namespace, "pod": pod.metadata.name, "container": CONTAINER_NAME}
    with suppress(ClusterUnreachable):  # a tool that hangs proves nothing either
        try:
            run_in_pod(connection, command=COMMAND, answer_s=answer_s, **where)
        except CommandFailed as failed:
            if GPU_GONE.search(str(failed)):
                return str(failed)
    return ""
