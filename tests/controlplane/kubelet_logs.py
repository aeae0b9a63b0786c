"""Output of containers, which kwok serves from files as a kubelet does.

The files have the runtimes' form (CRI), and kwok reads them with the kubelet's own code: since, tail and
limits are the real ones. One pair of files is the output of every pod.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tests.controlplane.api import Api, Object

OUTPUT, PREVIOUS = "output.log", "previous-output.log"


def all_of_the_output(folder: Path) -> Object:
    """Return kwok's rule that every container's output is in two files."""
    for name in (OUTPUT, PREVIOUS):
        (folder / name).touch()
    logs = [{"logsFile": str(folder / OUTPUT), "previousLogsFile": str(folder / PREVIOUS)}]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterLogs",
        "metadata": {"name": "output"},
        "spec": {"logs": logs},
    }


def write_output(file: Path, lines: Sequence[tuple[datetime, str]]) -> None:
    """Append lines of a container to its file."""
    with file.open("a") as output:
        for at, text in lines:
            output.write(f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z stdout F {text}\n")


def give_kubelet_address(api: Api, node: str, *, host: str, port: int) -> None:
    """Set a node's address to that of its played kubelet."""
    status = {
        "addresses": [{"type": "InternalIP", "address": host}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    api.patch(f"/api/v1/nodes/{node}/status", {"status": status})
