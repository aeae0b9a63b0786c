"""Benchmark of leases on a real control plane, with product and cluster on one machine.

It measures the time from a POST to the API until the cluster's own watch reports the pod running; how
many per second in a row; the load of an idle fleet of leases on the API server; and the recovery time
after kill -9 of that server. Before that the control plane alone does the same with bare StatefulSets at
the same rate: the product can be no faster. `make bench ONLY=kubernetes SIZE=small` runs less, for a
busy machine; `SIZE=many` holds five thousand leases, which take two processors ten minutes more.
"""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from statistics import quantiles

import django
from django.db import transaction

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from bench.figures import Figures  # noqa: E402
from broker.models import ClusterWatch, Lease  # noqa: E402
from broker.provisioners.kubernetes.labels import PROJECT  # noqa: E402
from ports import clock, ids, outbox  # noqa: E402
from ports.models import OutboxMessage  # noqa: E402
from tenants.services.rls import system_scope  # noqa: E402
from tests.controlplane.nodes import GpuNode, Nodes  # noqa: E402
from tests.controlplane.plane import API, ControlPlane  # noqa: E402
from tests.live import effort, installation  # noqa: E402
from tests.live.audit import READS, WRITES, Audit  # noqa: E402
from tests.live.installation import Tenant, until  # noqa: E402
from tests.live.pod_times import LEASE, PodTimeRecorder  # noqa: E402
from tests.live.processes import Processes  # noqa: E402

REGION, CLUSTER = "eu-north", "north"
SLICES_PER_NODE = 56
SLICES = GpuNode(gpus=8, cut=8, mig={"1g.10gb": SLICES_PER_NODE})
LEASES_PER_PROJECT = 500
RATE = 20  # launches per second
IDLE_S = 60  # how long the held leases are left alone
# What an agent follows: its plural, and the label that marks our objects.
WATCHED_KINDS = {
    "Pod": ("pods", LEASE),
    "ConfigMap": ("configmaps", LEASE),
    "Node": ("nodes", ""),
    "ResourceQuota": ("resourcequotas", PROJECT),
}
FOREIGN_WATCHES = {"pods": 1}  # an agent follows the pods of others, too
LOG_READS = {("get", "pods/log"), ("list", "events")}
TIMEOUT_S = 240.0


@dataclass(frozen=True)
class Size:
    """Amount of work."""

    held: int = 600  # leases
    launches: int = 200  # at a steady rate
    burst: int = 300  # leases requested as fast as possible

    @property
    def nodes(self) -> int:
        return self.held // SLICES_PER_NODE + 6

    @property
    def timeout_s(self) -> float:
        return TIMEOUT_S + self.held / 3


SIZES = {"": Size(), "small": Size(held=120, launches=40, burst=60), "many": Size(held=5000)}


class Bench:
    """One cluster, one product, and the measurements on them."""

    def __init__(self, figures: Figures, plane: ControlPlane, processes: Processes, audit: Audit, size: Size) -> None:
        self.figures, self.plane, self.processes, self.size = figures, plane, processes, size
        self.audit = audit
        Nodes(plane.api, "gpu").add_many(size.nodes, SLICES)
        self.measure_baseline()
        print(installation.join(plane, processes, name=CLUSTER, region=REGION), file=sys.stderr)
        installation.sell(CLUSTER, 8 * size.nodes)
        self.offering = installation.offering("1g.10gb", REGION)
        self.tenants = [installation.tenant(processes) for _ in range(size.held // LEASES_PER_PROJECT + 2)]
        self._next_tenant = cycle(self.tenants)

    def measure_baseline(self) -> None:
        """Measure the control plane alone: from a bare StatefulSet to its running pod."""
        with PodTimeRecorder(self.plane.api) as pod_times:
            self.at_rate(5, 1, pod_times, self.create_bare_pod)
            took = quantiles(self.at_rate(self.size.launches, RATE, pod_times, self.create_bare_pod), n=100)
            began, before, count = clock.monotonic(), self.effort(), self.size.burst
            self.at_rate(count, 120, pod_times, self.create_bare_pod)
            rate = count / (max(pod_times.running.values()) - began)
            spent = 1000 * (self.effort()[1] - before[1]) / count
        print(
            f"the control plane alone: p50 {took[49]:.3f} s, p99 {took[98]:.3f} s at {RATE}/s;"
            f" {rate:.1f}/s in a row, {spent:.0f} ms CPU each on {os.cpu_count()} processors",
            file=sys.stderr,
        )
        self.plane.api.delete("/apis/apps/v1/namespaces/default/statefulsets")
        until(lambda: not self.plane.api.items("/api/v1/namespaces/default/pods"), TIMEOUT_S, "all is gone")

    def create_bare_pod(self) -> str:
        """Create a pod as a lease's is created, without the product in between."""
        name = ids.new("lse")
        labels = {LEASE: name}
        limits = {"nvidia.com/mig-1g.10gb": "1", "cpu": "1"}
        main = {"name": "main", "image": installation.IMAGE, "resources": {"limits": limits}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [main]}}
        self.plane.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": name.replace("_", "-"), "namespace": "default"},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
            }
        )
        return name

    def request_lease(self) -> str:
        """Request one lease; return its id."""
        who: Tenant = next(self._next_tenant)
        answer = who.ask(self.offering)
        if not answer.accepted:
            raise RuntimeError(f"{answer.status} {answer.body}")
        return str(answer.body["id"])

    def at_rate(self, count: int, rate: float, pod_times: PodTimeRecorder, send: Callable[[], str]) -> list[float]:
        """Send requests at a steady rate; return the time from each until its pod ran.

        The time counts from when each was due, so that waiting to be sent counts too.
        """
        requests = []
        with ThreadPoolExecutor(16) as pool:
            began = clock.monotonic()
            for n in range(count):
                due = began + n / rate
                clock.sleep(max(0.0, due - clock.monotonic()))
                requests.append((pool.submit(send), due))
        leases = {each.result(): due for each, due in requests}
        until(lambda: leases.keys() <= pod_times.running.keys(), self.size.timeout_s, "every pod runs")
        return [pod_times.running[lease] - due for lease, due in leases.items()]

    def measure_launches(self, pod_times: PodTimeRecorder) -> None:
        """Time launches at a steady rate."""
        self.at_rate(5, 1, pod_times, self.request_lease)  # warm-up: network policies exist, connections are open
        took = quantiles(self.at_rate(self.size.launches, RATE, pod_times, self.request_lease), n=100)
        self.figures.report_max("launch_p50", took[49], unit="s", at_most=0.25)
        self.figures.report_max("launch_p99", took[98], unit="s", at_most=1)

    def measure_throughput(self, pod_times: PodTimeRecorder) -> None:
        """Request as many leases as possible; count the pods started per second."""
        count, began, before, sent = self.size.burst, clock.monotonic(), self.effort(), enqueued_count()
        self.at_rate(count, 120, pod_times, self.request_lease)
        took = max(pod_times.running.values()) - began
        ours, theirs = (1000 * (b - a) / count for a, b in zip(before, self.effort(), strict=True))
        print(f"a lease took {ours:.0f} ms CPU of the product and {theirs:.0f} of the cluster", file=sys.stderr)
        self.figures.report_min("sustained", count / took, unit="1/s", at_least=60)
        # Expected: one message to provision and one for the end; more are needless checks.
        self.figures.report_max(
            "messages_per_launch", (enqueued_count() - sent - 1) / count, unit="messages", at_most=2.1
        )

    def effort(self) -> tuple[float, float]:
        """Return the CPU seconds used by the product's processes and the cluster's."""
        return effort.seconds(self.processes.running.values()), effort.seconds(self.plane.processes.values())

    def measure_idle_load(self, pod_times: PodTimeRecorder) -> None:
        """Count reads and writes of the API server by an idle fleet, without watches.

        The rare sweep of every lease is included: it is enqueued once, more often than beat does. Reads of logs
        and of the events of pods that just started are counted apart.
        """
        leases = len(pod_times.running)
        missing = self.size.held - leases
        if missing > 0:
            self.at_rate(missing, 60, pod_times, self.request_lease)
            leases += missing
        until(self.is_idle, self.size.timeout_s, "every lease is active and no message is pending")
        self.audit.forget()
        began = clock.monotonic()
        outbox.enqueue("broker.sweep_all", "", now=clock.now())
        clock.sleep(IDLE_S)
        until(self.is_idle, self.size.timeout_s, "every lease was checked")
        seconds, calls = clock.monotonic() - began, self.audit.made()
        print(f"{leases} leases at rest, {seconds:.0f} s: {calls}", file=sys.stderr)
        writes = sum(n for (verb, _), n in calls.items() if verb in WRITES)
        reads = sum(n for call, n in calls.items() if call[0] in READS and call not in LOG_READS)
        log_reads = sum(n for call, n in calls.items() if call in LOG_READS)
        self.figures.report_max("steady_writes", writes / seconds, unit=f"1/s by {leases} leases", at_most=1)
        self.figures.report_max("steady_reads", reads / seconds, unit=f"1/s by {leases} leases", at_most=0)
        # Output is only known by asking for it: log and events at most once a minute each, where nobody reads them.
        self.figures.report_max(
            "steady_log_reads", log_reads / seconds, unit=f"1/s by {leases} leases", at_most=leases / 30
        )

    def is_idle(self) -> bool:
        """Return whether every lease is active and every message was processed."""
        with system_scope():
            under_way = Lease.objects.live().exclude(state="active").exists()
        return not under_way and not OutboxMessage.objects.filter(at__lte=clock.now()).exists()

    def measure_recovery(self) -> None:
        """Kill the API server; time the recovery, with at most one list per watch."""
        if WATCHED_KINDS.keys() != (known := set(ClusterWatch.objects.values_list("kind", flat=True))):
            raise RuntimeError(f"the agent follows {known}")
        self.processes.kill("beat")  # its sweeps list too, and are not what is counted
        self.plane.kill(API)
        self.audit.forget()
        self.plane.restart(API)
        began = clock.monotonic()
        versions = {kind: self.annotate_one(kind, *found) for kind, found in WATCHED_KINDS.items()}
        until(
            lambda: all(self.watch_version(kind) >= version for kind, version in versions.items()),
            TIMEOUT_S,
            "every watch told of what changed after the restart",
        )
        took = clock.monotonic() - began
        calls = self.audit.made()
        print(f"after the kill: {dict(calls)}", file=sys.stderr)
        lists = [calls["list", what] / (1 + FOREIGN_WATCHES.get(what, 0)) for what, _ in WATCHED_KINDS.values()]
        self.figures.report_max("converged_after_kill", took, unit="s", at_most=10)
        self.figures.report_max("relists_a_watch", max(lists), unit="lists", at_most=1)

    def annotate_one(self, kind: str, what: str, label: str) -> int:
        """Annotate a watched object as a third party; return its new resource version."""
        it = self.plane.api.items(f"/api/v1/{what}", labelSelector=label)[0]
        path = self.plane.api.path({"apiVersion": "v1", "kind": kind, "metadata": it["metadata"]})
        note = {"metadata": {"annotations": {"stranger/note": "after the restart"}}}
        return int(self.plane.api.patch(path, note)["metadata"]["resourceVersion"])

    def watch_version(self, kind: str) -> int:
        return ClusterWatch.objects.values_list("version", flat=True).get(kind=kind)


def enqueued_count() -> int:
    """Return how many messages were ever enqueued, by taking the next sequence value."""
    with transaction.atomic():
        number = OutboxMessage.objects.create(task="none", subject="", at=clock.now()).pk
        transaction.set_rollback(True)
    return int(number)


@contextmanager
def start_control_plane(audit: Audit, figures: Figures) -> Iterator[ControlPlane]:
    """Start a control plane, and print how long it took until it could run pods."""
    began = clock.monotonic()
    with ControlPlane(audit.options()) as plane:
        figures.report_max("control_plane_up", clock.monotonic() - began, unit="s", at_most=6)
        yield plane


def main() -> None:
    figures = Figures("kubernetes")
    size = SIZES["".join(sys.argv[1:])]
    with (
        Audit() as audit,
        start_control_plane(audit, figures) as plane,
        Processes() as processes,
        PodTimeRecorder(plane.api) as pod_times,
    ):
        bench = Bench(figures, plane, processes, audit, size)
        bench.measure_launches(pod_times)
        bench.measure_throughput(pod_times)
        bench.measure_idle_load(pod_times)
        bench.measure_recovery()
    figures.exit_with_status()


if __name__ == "__main__":
    main()
