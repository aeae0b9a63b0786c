"""The agent of one cluster with 500 nodes and 5,000 pods, on a real API server: a relist, its memory, its lag.

`python -m bench.kubernetes_agent small` asks for a tenth, for a look on a busy machine.
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from statistics import median, quantiles
from time import process_time
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.figures import Figures  # noqa: E402
from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu  # noqa: E402
from broker.provisioners.kubernetes import labels, objects  # noqa: E402
from broker.provisioners.kubernetes.kinds import POD  # noqa: E402
from broker.provisioners.kubernetes.transport import Transport  # noqa: E402
from broker.services import examining  # noqa: E402
from ports import clock, ids  # noqa: E402
from tests.controlplane.commands import Options  # noqa: E402
from tests.controlplane.nodes import GpuNode, Nodes  # noqa: E402
from tests.controlplane.plane import ADMINISTRATORS, ControlPlane  # noqa: E402
from tests.live import installation  # noqa: E402
from tests.live.installation import until  # noqa: E402
from tests.live.processes import Processes  # noqa: E402

NODES, PODS, A_SECOND, SECONDS, REPEATS = 500, 5000, 500, 10, 5
WHERE = "/api/v1/namespaces/default/pods"
PATIENCE_S = 900.0
# As many bytes as a pod of ours has: environment, probes, what admission adds.
FILLER = {f"VARIABLE_{n}": "as-long-as-values-usually-are" for n in range(24)}


def pod(number: int, node: str) -> dict[str, Any]:
    """Return one of ours on a node, as the API server keeps it."""
    marks = {labels.LEASE: ids.new("lse"), labels.GENERATION: "1", labels.TENANT: ids.new("ten")}
    name, _, value = labels.OURS.partition("=")
    env = [{"name": key, "value": text} for key, text in FILLER.items()]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {**marks, name: value}},
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
    """Return the CPU seconds of one list of all pods, every one decoded."""
    began = process_time()
    for page, _ in transport.within(60).pages(POD, labels=labels.OURS):
        for item in page:
            objects.narrow(item, objects.Pod)
    return process_time() - began


def resident_mb(pid: int) -> float:
    """Return the most memory a process has had in RAM."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def examined() -> float:
    """Return how long an examination of the whole cluster takes."""
    began = clock.monotonic()
    findings = examining.of_cluster(Cluster.objects.get(name="north"), now=clock.now())
    print(f"kube_doctor: {len(findings)} findings", file=sys.stderr)
    return clock.monotonic() - began


def changes(plane: ControlPlane, count: int, rate: float) -> Iterator[tuple[str, float]]:
    """Change pods at a steady rate; yield each one's name and when the server had said that it is changed."""

    def change(number: int) -> tuple[str, float]:
        mark = {"metadata": {"annotations": {"bench": str(clock.monotonic())}}}
        plane.api.patch(f"{WHERE}/pod-{number}", mark)
        return f"pod-{number}", clock.monotonic()

    with ThreadPoolExecutor(16) as pool:
        began, asked = clock.monotonic(), []
        for number in range(count):
            clock.sleep(max(0.0, began + number / rate - clock.monotonic()))
            asked.append(pool.submit(change, number))
        yield from (each.result() for each in asked)
    print(f"{count / (clock.monotonic() - began):.0f} changes a second were made", file=sys.stderr)


def lag(plane: ControlPlane, count: int) -> list[float]:
    """Return how long after the server had made each change its row was written."""
    before = ClusterObject.objects.filter(kind="Pod").latest("version").version
    base, zero = clock.now(), clock.monotonic()  # rows are dated by the database's clock
    asked = dict(changes(plane, count, A_SECOND))
    seen = ClusterObject.objects.filter(kind="Pod", version__gt=before, name__in=asked)
    until(lambda: seen.count() >= count, PATIENCE_S, "every change is written")
    moments = dict(seen.values_list("name", "seen_at"))
    return [
        (moments[name] - base - timedelta(seconds=at - zero)).total_seconds() for name, at in asked.items()
    ]


def main() -> None:
    figures = Figures("kubernetes_agent")
    scale = 10 if sys.argv[1:] == ["small"] else 1
    quiet = Options(node_lease_s=120, node_grace_s=300)  # five hundred kubelets on two processors are loud
    with ControlPlane(quiet) as plane, Processes() as processes:
        nodes = Nodes(plane.api, "gpu").add_many(NODES // scale, GpuNode(cards=8), within=PATIENCE_S)
        fill(plane, nodes, PODS // scale)
        transport = Transport(lambda: plane.kubeconfig("admin", ADMINISTRATORS))
        relist(transport)  # imports the client
        took = median(relist(transport) for _ in range(REPEATS))
        figures.most("relist_cpu", took * scale, unit="s", at_most=0.25)
        installation.join(plane, processes, name="north", region="eu-north")
        agent = processes.running["agent-north"]
        until(lambda: ClusterWatch.objects.count() == 3, PATIENCE_S, "the agent has listed")
        until(lambda: ClusterObject.objects.count() >= (PODS + NODES) // scale, PATIENCE_S, "and written")
        until(lambda: Gpu.objects.count() >= 8 * NODES // scale, PATIENCE_S, "every card is inventory")
        figures.most("kube_doctor", examined(), unit="s", at_most=10)
        late = quantiles(lag(plane, min(PODS // scale, A_SECOND * SECONDS)), n=100)
        figures.most("watch_lag_p99", late[98], unit="s", at_most=0.25)
        figures.most("agent_memory", resident_mb(agent.popen.pid), unit="MB", at_most=150)
    figures.leave()


if __name__ == "__main__":
    main()
