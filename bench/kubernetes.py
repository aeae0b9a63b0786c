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
from tests.live.processes import Processes  # noqa: E402
from tests.live.sightings import LEASE, Sightings  # noqa: E402

REGION, CLUSTER = "eu-north", "north"
ON_A_NODE = 56  # slices
SLICES = GpuNode(gpus=8, cut=8, mig={"1g.10gb": ON_A_NODE})
A_PROJECT_HOLDS = 500
RATE, SECONDS = 20, 10  # of launches
AT_ONCE, STEADY_S = 300, 60  # leases asked for in a row; how long those that are held are left alone
# What an agent follows: its plural, and the label by which ours are told from others.
FOLLOWED = {
    "Pod": ("pods", LEASE),
    "ConfigMap": ("configmaps", LEASE),
    "Node": ("nodes", ""),
    "ResourceQuota": ("resourcequotas", PROJECT),
}
PATIENCE_S = 240.0


@dataclass(frozen=True)
class Size:
    """Amount of work."""

    held: int = 600  # leases
    part: int = 1  # of launches, one in so many

    @property
    def nodes(self) -> int:
        return self.held // ON_A_NODE + 6

    @property
    def patience_s(self) -> float:
        return PATIENCE_S + self.held / 3


SIZES = {"": Size(), "small": Size(held=120, part=5), "many": Size(held=5000)}


class Bench:
    """One cluster, one product, and the measurements on them."""

    def __init__(self, figures: Figures, plane: ControlPlane, processes: Processes, audit: Audit, size: Size) -> None:
        self.figures, self.plane, self.processes, self.size = figures, plane, processes, size
        self.calls = audit
        Nodes(plane.api, "gpu").add_many(size.nodes, SLICES)
        self.alone()
        print(installation.join(plane, processes, name=CLUSTER, region=REGION), file=sys.stderr)
        installation.sell(CLUSTER, 8 * size.nodes)
        self.offering = installation.offering("1g.10gb", REGION)
        self.tenants = [installation.tenant(processes) for _ in range(size.held // A_PROJECT_HOLDS + 2)]
        self._turn = cycle(self.tenants)

    def alone(self) -> None:
        """Measure the control plane alone: from a bare StatefulSet to its running pod."""
        with Sightings(self.plane.api) as sightings:
            self.at_rate(5, 1, sightings, self.bare)
            took = quantiles(self.at_rate(RATE * SECONDS // self.size.part, RATE, sightings, self.bare), n=100)
            began, before, count = clock.monotonic(), self.effort(), AT_ONCE // self.size.part
            self.at_rate(count, 120, sightings, self.bare)
            rate = count / (max(sightings.running.values()) - began)
            spent = 1000 * (self.effort()[1] - before[1]) / count
        print(
            f"the control plane alone: p50 {took[49]:.3f} s, p99 {took[98]:.3f} s at {RATE}/s;"
            f" {rate:.1f}/s in a row, {spent:.0f} ms CPU each on {os.cpu_count()} processors",
            file=sys.stderr,
        )
        self.plane.api.delete("/apis/apps/v1/namespaces/default/statefulsets")
        until(lambda: not self.plane.api.items("/api/v1/namespaces/default/pods"), PATIENCE_S, "all is gone")

    def bare(self) -> str:
        """Create a pod as a lease's is created, without the product in between."""
        name = ids.new("lse")
        marks = {LEASE: name}
        limits = {"nvidia.com/mig-1g.10gb": "1", "cpu": "1"}
        main = {"name": "main", "image": installation.IMAGE, "resources": {"limits": limits}}
        template = {"metadata": {"labels": marks}, "spec": {"containers": [main]}}
        self.plane.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": name.replace("_", "-"), "namespace": "default"},
                "spec": {"replicas": 1, "selector": {"matchLabels": marks}, "template": template},
            }
        )
        return name

    def ask(self) -> str:
        """Request one lease; return its id."""
        who: Tenant = next(self._turn)
        answer = who.ask(self.offering)
        if not answer.accepted:
            raise RuntimeError(f"{answer.status} {answer.body}")
        return str(answer.body["id"])

    def at_rate(self, count: int, rate: float, sightings: Sightings, ask: Callable[[], str]) -> list[float]:
        """Send requests at a steady rate; return the time from each until its pod ran.

        The time counts from when each was due, so that waiting to be sent counts too.
        """
        requests = []
        with ThreadPoolExecutor(16) as pool:
            began = clock.monotonic()
            for n in range(count):
                due = began + n / rate
                clock.sleep(max(0.0, due - clock.monotonic()))
                requests.append((pool.submit(ask), due))
        leases = {each.result(): due for each, due in requests}
        until(lambda: leases.keys() <= sightings.running.keys(), self.size.patience_s, "every pod runs")
        return [sightings.running[lease] - due for lease, due in leases.items()]

    def launches(self, sightings: Sightings) -> None:
        """Time launches at a steady rate."""
        self.at_rate(5, 1, sightings, self.ask)  # walls are up, connections open
        took = quantiles(self.at_rate(RATE * SECONDS // self.size.part, RATE, sightings, self.ask), n=100)
        self.figures.most("launch_p50", took[49], unit="s", at_most=0.25)
        self.figures.most("launch_p99", took[98], unit="s", at_most=1)

    def sustained(self, sightings: Sightings) -> None:
        """Request as many leases as possible; count the pods started per second."""
        count, began, before, earlier = AT_ONCE // self.size.part, clock.monotonic(), self.effort(), enqueued_count()
        self.at_rate(count, 120, sightings, self.ask)
        took = max(sightings.running.values()) - began
        ours, theirs = (1000 * (b - a) / count for a, b in zip(before, self.effort(), strict=True))
        print(f"a lease took {ours:.0f} ms CPU of the product and {theirs:.0f} of the cluster", file=sys.stderr)
        self.figures.least("sustained", count / took, unit="1/s", at_least=60)
        # One of its own, that it be looked at, and one for its end: any other is a look at what nobody changed.
        self.figures.most("messages_per_launch", (enqueued_count() - earlier - 1) / count, unit="messages", at_most=2.1)

    def effort(self) -> tuple[float, float]:
        """Return the CPU seconds used by the product's processes and the cluster's."""
        return effort.seconds(self.processes.running.values()), effort.seconds(self.plane.processes.values())

    def steady(self, sightings: Sightings) -> None:
        """Count the reads of the API server while idle, without watches.

        The rare sweep of every lease is included: it is enqueued once, more often than beat does.
        """
        held = len(sightings.running)
        missing = self.size.held - held
        if missing > 0:
            self.at_rate(missing, 60, sightings, self.ask)
            held += missing
        until(self.at_rest, self.size.patience_s, "every lease is active and no message is pending")
        self.calls.forget()
        began = clock.monotonic()
        outbox.enqueue("broker.sweep_all", "", now=clock.now())
        clock.sleep(STEADY_S)
        until(self.at_rest, self.size.patience_s, "every lease was looked at")
        seconds, made = clock.monotonic() - began, self.calls.made()
        print(f"{held} leases at rest, {seconds:.0f} s: {made}", file=sys.stderr)
        writes = sum(n for (verb, _), n in made.items() if verb in WRITES)
        reads = sum(n for (verb, _), n in made.items() if verb in READS)
        self.figures.most("steady_writes", writes / seconds, unit=f"1/s by {held} leases", at_most=1)
        self.figures.most("steady_reads", reads / seconds, unit=f"1/s by {held} leases", at_most=0)

    def at_rest(self) -> bool:
        """Return whether every lease is active and every message was processed."""
        with system_scope():
            under_way = Lease.objects.live().exclude(state="active").exists()
        return not under_way and not OutboxMessage.objects.filter(at__lte=clock.now()).exists()

    def server_killed(self) -> None:
        """Kill the API server; time the recovery, with at most one list per watch."""
        if FOLLOWED.keys() != (known := set(ClusterWatch.objects.values_list("kind", flat=True))):
            raise RuntimeError(f"the agent follows {known}")
        self.processes.kill("beat")  # its sweeps list too, and are not what is counted
        self.plane.kill(API)
        self.calls.forget()
        self.plane.restart(API)
        began, versions = (
            clock.monotonic(),
            {kind: self.change_one(kind, *found) for kind, found in FOLLOWED.items()},
        )
        until(
            lambda: all(self.heard(kind) >= version for kind, version in versions.items()),
            PATIENCE_S,
            "every watch told of what changed after the restart",
        )
        took = clock.monotonic() - began
        wanted = self.calls.made()
        print(f"after the kill: {dict(wanted)}", file=sys.stderr)
        lists = [wanted["list", what] for what, _ in FOLLOWED.values()]
        self.figures.most("converged_after_kill", took, unit="s", at_most=10)
        self.figures.most("relists_a_kind", max(lists), unit="lists", at_most=1)

    def change_one(self, kind: str, what: str, label: str) -> int:
        """Annotate a watched object as a third party; return its new resource version."""
        it = self.plane.api.items(f"/api/v1/{what}", labelSelector=label)[0]
        path = self.plane.api.path({"apiVersion": "v1", "kind": kind, "metadata": it["metadata"]})
        note = {"metadata": {"annotations": {"stranger/note": "after the restart"}}}
        return int(self.plane.api.patch(path, note)["metadata"]["resourceVersion"])

    def heard(self, kind: str) -> int:
        return ClusterWatch.objects.values_list("version", flat=True).get(kind=kind)


def enqueued_count() -> int:
    """Return how many messages were ever enqueued, by taking the next sequence value."""
    with transaction.atomic():
        number = OutboxMessage.objects.create(task="none", subject="", at=clock.now()).pk
        transaction.set_rollback(True)
    return int(number)


@contextmanager
def started(audit: Audit, figures: Figures) -> Iterator[ControlPlane]:
    """Start a control plane, and print how long it took until it could run pods."""
    began = clock.monotonic()
    with ControlPlane(audit.options()) as plane:
        figures.most("control_plane_up", clock.monotonic() - began, unit="s", at_most=6)
        yield plane


def main() -> None:
    figures = Figures("kubernetes")
    size = SIZES["".join(sys.argv[1:])]
    with (
        Audit() as audit,
        started(audit, figures) as plane,
        Processes() as processes,
        Sightings(plane.api) as sightings,
    ):
        bench = Bench(figures, plane, processes, audit, size)
        bench.launches(sightings)
        bench.sustained(sightings)
        bench.steady(sightings)
        bench.server_killed()
    figures.leave()


if __name__ == "__main__":
    main()
