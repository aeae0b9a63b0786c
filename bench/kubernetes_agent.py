"""Benchmark of the agent of a cluster with 500 nodes and 5,000 pods.

It runs against a real API server and measures relisting, memory and lag. Changes are written to the API
server's own store, as many a second as requested, and it notifies its watchers: a PATCH costs it five
milliseconds, which two processors have no time for five hundred times a second. Kubelets, scheduler and
controllers are paused; none of them is between a change and its row.

`make bench ONLY=kubernetes_agent SIZE=small` runs a tenth, for a busy machine.
"""

import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles
from time import process_time
from typing import Any

import django
import urllib3

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.figures import Figures  # noqa: E402
from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu  # noqa: E402
from broker.provisioners.kubernetes import labels  # noqa: E402
from broker.provisioners.kubernetes.client import objects  # noqa: E402
from broker.provisioners.kubernetes.client.kinds import POD  # noqa: E402
from broker.provisioners.kubernetes.client.transport import Transport  # noqa: E402
from broker.services.clusters.registration import cluster_examination  # noqa: E402
from ports import clock, ids  # noqa: E402
from tests.controlplane.commands import LOCAL, Options  # noqa: E402
from tests.controlplane.nodes import GpuNode, Nodes  # noqa: E402
from tests.controlplane.plane import (  # noqa: E402
    ADMINISTRATORS,
    KUBELETS,
    MANAGER,
    SCHEDULER,
    ControlPlane,
)
from tests.live import effort, installation  # noqa: E402
from tests.live.installation import until  # noqa: E402
from tests.live.processes import Processes  # noqa: E402

NODES, PODS, A_SECOND, SECONDS, REPEATS = 500, 5000, 500, 10, 5
WHERE = "/api/v1/namespaces/default/pods"
PATIENCE_S = 900.0
BEFORE, AFTER = b"turn-before", b"turn-beyond"  # a label of every pod; as long as each other
# As many bytes as a pod of ours has: environment, probes, what admission adds.
FILLER = {f"VARIABLE_{n}": "as-long-as-values-usually-are" for n in range(24)}


def pod(number: int, node: str) -> dict[str, Any]:
    """Return a pod of ours on a node, as stored by the API server."""
    marks = {labels.LEASE: ids.new("lse"), labels.GENERATION: "1", labels.TENANT: ids.new("ten")}
    name, _, value = labels.OURS_SELECTOR.partition("=")
    env = [{"name": key, "value": text} for key, text in FILLER.items()]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {**marks, name: value, "bench": BEFORE.decode()}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "registry.example/acts:hang-0s", "env": env}],
        },
    }


def fill(plane: ControlPlane, nodes: list[str], count: int) -> None:
    """Create the pods and wait until they run."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: plane.api.create(pod(n, nodes[n % len(nodes)])), range(count)))
    waits = {"fieldSelector": "status.phase=Pending", "limit": 1}
    until(lambda: not plane.api.items(WHERE, **waits), PATIENCE_S, f"{count} pods run")


def relist(transport: Transport) -> float:
    """Return the CPU seconds of listing and decoding all pods."""
    began = process_time()
    for page, _ in transport.within(60).pages(POD, labels=labels.OURS_SELECTOR):
        for item in page:
            objects.reencode(item, objects.ObservedPod)
    return process_time() - began


def resident_mb(pid: int) -> float:
    """Return the peak resident memory of a process, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def examined() -> float:
    """Return how long an examination of the whole cluster takes."""
    began = clock.monotonic()
    findings = cluster_examination.examine_cluster(Cluster.objects.get(name="north"), now=clock.now())
    print(f"kube_doctor: {len(findings)} findings", file=sys.stderr)
    return clock.monotonic() - began


class Store:
    """Client of the API server's own store, through its local port."""

    def __init__(self, plane: ControlPlane) -> None:
        self._url = f"http://{LOCAL}:{plane.places.etcd}/v3/kv"
        self._pool = urllib3.PoolManager(maxsize=4, block=True)

    def pods(self) -> dict[str, str]:
        """Return every pod by its key, both as encoded in the store."""
        first, end = (b64encode(f"/registry/pods/default{c}".encode()).decode() for c in "/0")
        kept = self._say("range", {"key": first, "range_end": end})["kvs"]
        return {each["key"]: each["value"] for each in kept}

    def put(self, key: str, value: str) -> None:
        self._say("put", {"key": key, "value": value})

    def _say(self, verb: str, body: dict[str, str]) -> dict[str, Any]:
        answer = self._pool.request("POST", f"{self._url}/{verb}", json=body, timeout=60)
        if answer.status != 200:
            raise RuntimeError(f"the store answers {answer.status}")
        return dict(answer.json())


def changes(plane: ControlPlane, count: int, rate: float) -> Iterator[tuple[str, float]]:
    """Change a label of pods at a steady rate; yield name and time of each."""
    store = Store(plane)
    there = list(store.pods().items())[:count]
    changed = [(key, b64encode(b64decode(value).replace(BEFORE, AFTER)).decode()) for key, value in there]

    def change(key: str, value: str) -> tuple[str, float]:
        store.put(key, value)
        return b64decode(key).decode().rpartition("/")[2], clock.monotonic()

    with ThreadPoolExecutor(4) as pool:
        began, requests = clock.monotonic(), []
        for number, pair in enumerate(changed):
            clock.sleep(max(0.0, began + number / rate - clock.monotonic()))
            requests.append(pool.submit(change, *pair))
        yield from (each.result() for each in requests)
    print(f"{count / (clock.monotonic() - began):.0f} changes a second were made", file=sys.stderr)


def lag(plane: ControlPlane, count: int) -> list[float]:
    """Return the delay between each change in the store and its row.

    Rows are dated when their batch is taken, just before it is written; the next is taken after that.
    """
    before = ClusterObject.objects.filter(kind="Pod").latest("version").version
    base, zero = clock.now(), clock.monotonic()  # rows are dated by the database's clock
    values = dict(changes(plane, count, A_SECOND))
    seen = ClusterObject.objects.filter(kind="Pod", version__gt=before, name__in=values)
    until(lambda: seen.count() >= count, PATIENCE_S, "every change is written")
    moments = dict(seen.values_list("name", "seen_at"))
    taken = sorted(set(moments.values()))
    written = dict(zip(taken, [*taken[1:], clock.now()], strict=True))
    return [
        (written[moments[name]] - base - timedelta(seconds=at - zero)).total_seconds() for name, at in values.items()
    ]


def main() -> None:
    figures = Figures("kubernetes_agent")
    scale = 10 if sys.argv[1:] == ["small"] else 1
    quiet = Options(node_lease_s=120, node_grace_s=300)  # five hundred kubelets on two processors are loud
    with ControlPlane(quiet) as plane, Processes() as processes:
        nodes = Nodes(plane.api, "gpu").add_many(NODES // scale, GpuNode(gpus=8), within=PATIENCE_S)
        fill(plane, nodes, PODS // scale)
        transport = Transport(lambda: plane.kubeconfig("admin", ADMINISTRATORS))
        relist(transport)  # imports the client
        took = median(relist(transport) for _ in range(REPEATS))
        figures.report_max("relist_cpu", took * scale, unit="s", at_most=0.25)
        installation.join(plane, processes, name="north", region="eu-north")
        agent = processes.running["agent-north"]
        until(lambda: ClusterWatch.objects.count() == 4, PATIENCE_S, "the agent has listed")
        until(lambda: ClusterObject.objects.count() >= (PODS + NODES) // scale, PATIENCE_S, "and written")
        until(lambda: Gpu.objects.count() >= 8 * NODES // scale, PATIENCE_S, "every GPU is inventory")
        figures.report_max("kube_doctor", examined(), unit="s", at_most=10)
        for part in (KUBELETS, SCHEDULER, MANAGER):
            plane.pause(part)
        count, before = min(PODS // scale, A_SECOND * SECONDS), effort.seconds([agent])
        late = quantiles(lag(plane, count), n=100)
        spent = 1000 * (effort.seconds([agent]) - before) / count
        print(f"the agent took {spent:.2f} ms CPU a change; lag p50 {late[49]:.3f} s", file=sys.stderr)
        figures.report_max("watch_lag_p99", late[98], unit="s", at_most=0.25)
        figures.report_max("agent_memory", resident_mb(agent.popen.pid), unit="MB", at_most=150)
    figures.exit_with_status()


if __name__ == "__main__":
    main()
