"""What kwok serves as a kubelet does: output of containers, and commands in them.

Output comes from files in the runtimes' form (CRI), which kwok reads with the kubelet's own code: since, tail
and limits are the real ones. One pair of files is the output of every pod. A command in a container runs on
this machine, in the subprotocols of a real API server and kubelet.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tests.controlplane.api import Api, Object

NOBODY = 65534
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


def all_of_the_commands() -> Object:
    """Return kwok's rule that a command in any container runs on this machine."""
    environment = [{"name": "PATH", "value": "/usr/bin:/bin"}, {"name": "HOME", "value": "/"}]
    target: Object = {"local": {"workDir": "/", "envs": environment}}
    if os.geteuid() == 0:  # a shell of the tests has no rights on this machine
        target["local"]["securityContext"] = {"runAsUser": NOBODY, "runAsGroup": NOBODY}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterExec",
        "metadata": {"name": "commands"},
        "spec": {"execs": [target]},
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
