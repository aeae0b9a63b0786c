"""`make demo-kubernetes`: the whole product on two control planes, with faults.

One has nodes with H100, the other nodes of seven more kinds and each by its own driver. Leases of every kind are
launched from the portal and become pods; a node dies, an API server is killed; at the end the books balance to the
second, nothing is left in either cluster, and nothing runs on.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("GPUBROKER_NODE_UNREACHABLE_TIMEOUT_S", "45")  # by default five minutes
django.setup()

from django.core.management import call_command  # noqa: E402

from billing.services.rating import lease_rating  # noqa: E402
from billing.services.reports import conservation  # noqa: E402
from broker.domain.workloads.templates import TEMPLATES  # noqa: E402
from broker.models import Allocation, Cluster, Lease  # noqa: E402
from ports import clock  # noqa: E402
from tenants.services.rls import system_scope  # noqa: E402
from tests.controlplane import binaries  # noqa: E402
from tests.controlplane.nodes import GpuNode, Nodes  # noqa: E402
from tests.controlplane.plane import API, ControlPlane  # noqa: E402
from tests.live import installation, node_kinds  # noqa: E402
from tests.live.installation import Tenant, until  # noqa: E402
from tests.live.person import Person  # noqa: E402
from tests.live.processes import Processes  # noqa: E402

REGION = "eu-north"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE8Q0Hk3Zt3o1mJrT6cRr2sC4GZ0w0vI2a9yQkq0bq1x mira@kestrel.example"
# Through what people come: nothing of it runs here, but its names are what leases are opened to.
ENTRANCES = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ingress-nginx"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gateway"}},
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"},
    },
]
WHOLE, CUT = GpuNode(gpus=4), GpuNode(gpus=2, cut=2, mig={"1g.10gb": 14})
# One lease of each kind of node beside H100 by device plugin; a 3g.40gb is of the node with strategy single or of DRA.
NEW_KINDS = (
    ("T4-16GB", "whole-gpu"),
    ("L40S-48GB", "whole-gpu"),
    ("A100-80GB", "1g.10gb"),
    ("H100-80GB", "3g.40gb"),
    ("H100-80GB", "2g.20gb"),
    ("CPU", "4vcpu"),
)
OVER = {"released", "failed"}
# What somebody writes into the launch page beside what it proposes.
WRITTEN = {
    "ssh": {"ssh_keys": KEY},
    "batch": {"command": "python train.py"},
    "own": {"image": "registry.example/kestrel/solver:1"},
}
PODS = (
    "custom-columns=LEASE:.metadata.labels.gpubroker\\.dev/lease,NODE:.spec.nodeName,PHASE:.status.phase,"
    "IMAGE:.spec.containers[0].image,REQUESTS:.spec.containers[0].resources.limits"
)


class Demo:
    """Two clusters, one product, one tenant."""

    def __init__(self, planes: dict[str, ControlPlane], processes: Processes) -> None:
        self.planes, self.processes = planes, processes
        self.nodes = {name: Nodes(plane.api, name) for name, plane in planes.items()}
        self.began = clock.now()
        self.tenant: Tenant

    def joins(self) -> None:
        """Set up, register and examine both clusters; put their GPUs on sale."""
        for name, plane in self.planes.items():
            for node in (WHOLE, CUT):
                self.nodes[name].add(node)
            for entrance in ENTRANCES:
                plane.api.create(entrance)
            ways = {
                "domain": f"{name}.gpu.example",
                "ingress": "ingress/nginx",
                "bastion": f"ssh.{name}.gpu.example",
            }
            if name == "south":
                node_kinds.add_nodes(self.nodes[name])
                ways["driver"] = "automatic"
            said = installation.join(plane, self.processes, name=name, region=REGION, **ways)
            say(f"kube_setup {name}: {said.count('made')} objects made; {said.splitlines()[-1]}")
            say(f"kube_doctor {name}: {examined(name)}")
        for name in self.planes:
            more = node_kinds.DEVICES if name == "south" else 0
            installation.await_inventory(name, WHOLE.gpus + CUT.gpus + more)
        node_kinds.sell_everything(now=clock.now())
        self.tenant = installation.tenant(self.processes)

    def launches(self) -> None:
        """Launch each kind of workload in the portal, and wait for pods."""
        slice_, gpu = (installation.offering(profile, REGION) for profile in ("1g.10gb", "whole-gpu"))
        person = Person(self.processes.port, self.tenant.project)
        for number, kind in enumerate(TEMPLATES):
            what = gpu if number % 3 == 2 else slice_
            lease = person.launch(what, name=kind, runs=kind, **WRITTEN.get(kind, {}))
            say(f"launched from the portal: {kind}, {lease}")
            self.tenant.leases.append(lease)
        for number in range(WHOLE.gpus):  # by the API, and more than one cluster has
            self._ask(gpu, name=f"gpu-{number}")
        for model, profile in NEW_KINDS:
            self._ask(installation.offering(profile, REGION, model=model), name=f"{model} {profile}")
        self.reach("active", self.tenant.leases)
        self.tell_ways()
        self.show()

    def _ask(self, offering: str, *, name: str) -> None:
        answer = self.tenant.ask(offering, name=name)
        if not answer.accepted:
            raise RuntimeError(f"{answer.status} {answer.body}")

    def node_dies(self) -> None:
        """Cut a node's power; its leases end and its GPUs stay unsold."""
        lease, cluster, node = self.somewhere()
        self.nodes[cluster].power(node, on=False)
        off, off_at = time.monotonic(), clock.now()
        until(lambda: self.state(lease) not in ("active",), 180, "the lease on the dead node ends")
        found = self.tenant.see(lease)
        say(
            f"{node} of {cluster} lost its power; {time.monotonic() - off:.0f} s later {found['name']} was"
            f" {found['status']['state']} ({found['status']['end_reason']}), charged until {found['ended_at']}"
        )
        if datetime.fromisoformat(found["ended_at"]) > off_at + timedelta(seconds=1):
            raise SystemExit(f"It was charged beyond {off_at}, when its node had no power.")
        say(f"its place is {'held until the node proves it free' if held(lease) else 'free'}")
        self.nodes[cluster].power(node, on=True)
        until(lambda: not held(lease), 180, "its place is free")
        say(f"{node} is back and nothing old runs there: its place is free")

    def server_dies(self) -> None:
        """Kill one API server; leases run on or use the other cluster."""
        name, plane = next(iter(self.planes.items()))
        plane.kill(API)
        answer = self.tenant.ask(installation.offering("1g.10gb", REGION), name="meanwhile")
        time.sleep(10)
        alive = [self.state(lease) for lease in self.tenant.leases]
        elsewhere = "went to the other cluster" if self.state(answer.body["id"]) == "active" else "waits"
        say(f"API server of {name} killed; 10 s later leases are: {counted(alive)}; what was asked for {elsewhere}")
        plane.restart(API)
        back = time.monotonic()
        self.reach("active", [answer.body["id"]])
        say(f"API server of {name} is back; all that was asked for runs {time.monotonic() - back:.1f} s later")
        self.show()

    def ends(self) -> None:
        """End everything, charge it, and account for every second."""
        for lease in self.tenant.leases:
            if self.state(lease) not in OVER:
                self.tenant.release(lease)
        until(lambda: all(self.state(each) in OVER for each in self.tenant.leases), 180, "all is released")
        for name, plane in self.planes.items():
            until(lambda plane=plane: not ours(plane), 60, f"nothing of ours is left in {name}")  # type: ignore[misc]
        lease_rating.rate_all_leases(now=clock.now())
        kept = conservation.check_conservation(first=self.began, last=clock.now()).as_report()
        say("the books, in GPU-seconds: " + str(kept["conservation"]))
        wrong = {
            what: kept[what]
            for what in (
                "unexplained_gpu_seconds",
                "charged_minus_active_seconds",
                "active_seconds_without_place",
            )
        }
        say(f"differences: {wrong}; pods left: 0; leases: {counted(map(self.state, self.tenant.leases))}")
        if any(wrong.values()):
            raise SystemExit("The books do not balance.")

    def tell_ways(self) -> None:
        """Print the connections of each lease."""
        for lease in self.tenant.leases:
            for way in self.tenant.ways_into(lease):
                say(f"{self.tenant.see(lease)['name']}: {way['label']}: {way['line']}")

    def state(self, lease: str) -> str:
        return str(self.tenant.see(lease).get("status", {}).get("state", ""))

    def reach(self, state: str, leases: list[str]) -> None:
        """Wait until leases are in a state, or report the others."""
        try:
            until(lambda: all(self.state(lease) == state for lease in leases), 120, state)
        except TimeoutError:
            for lease in leases:
                print(self.tenant.see(lease))
            raise

    def somewhere(self) -> tuple[str, str, str]:
        """Return an active lease, the cluster and the node it runs on."""
        for lease in self.tenant.leases:
            if self.state(lease) == "active" and (places := held(lease)):
                node = places[0].gpu.node
                return lease, str(Cluster.objects.get(pk=node.cluster_id).name), str(node.name)
        raise RuntimeError("no lease is active")

    def show(self) -> None:
        """Print the running pods as kubectl shows them."""
        for name, plane in self.planes.items():
            file = self.processes.folder / "kubeconfig"
            file.write_text(json.dumps(plane.kubeconfig("admin", "system:masters")))
            command = [str(binaries.find_binary("kubectl")), "--kubeconfig", str(file), "get", "pods", "-A"]
            print(f"$ kubectl --context {name} get pods -A -l gpubroker.dev/lease", flush=True)
            subprocess.run([*command, "-l", "gpubroker.dev/lease", "-o", PODS], check=True)


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


def counted(words: object) -> str:
    found = list(words)  # type: ignore[call-overload]
    return ", ".join(f"{found.count(word)} {word}" for word in sorted(set(found)))


def examined(name: str) -> str:
    """Examine a cluster; return the last line and the findings."""
    said = StringIO()
    try:
        call_command("kube_doctor", name, stdout=said)
    except SystemExit:
        print(said.getvalue())
        raise
    return said.getvalue().strip().splitlines()[-1]


def held(lease: str) -> list[Allocation]:
    with system_scope():
        mine = Allocation.objects.filter(lease_id=lease, released_at=None)
        return list(mine.select_related("gpu__node"))


def ours(plane: ControlPlane) -> list[object]:
    """Return the remaining objects of leases in a cluster."""
    kinds = ("/api/v1/pods", "/api/v1/configmaps", "/apis/apps/v1/statefulsets", "/apis/batch/v1/jobs")
    return [each for kind in kinds for each in plane.api.items(kind, labelSelector="gpubroker.dev/lease")]


def main() -> None:
    if missing := binaries.missing_binaries():
        sys.exit(f"There is no control plane here ({', '.join(missing)}). Run `make controlplane`, then this again.")
    with ExitStack() as running:
        began = time.monotonic()
        processes = running.enter_context(Processes())
        planes = {name: running.enter_context(ControlPlane()) for name in ("north", "south")}
        say(f"two control planes and the product are up after {time.monotonic() - began:.0f} s")
        demo = Demo(planes, processes)
        for act in (demo.joins, demo.launches, demo.node_dies, demo.server_dies, demo.ends):
            print(f"\n{(act.__doc__ or '').strip()}", flush=True)
            act()
        pids = [each.popen.pid for plane in planes.values() for each in plane.processes.values()]
        pids += [each.popen.pid for each in processes.running.values()]
    left = [pid for pid in pids if Path("/proc", str(pid)).exists()]
    say(f"stopped: {len(pids) - len(left)} of {len(pids)} processes are gone")
    with system_scope():
        say(f"in the database: {Lease.objects.count()} leases, all of them over")
    sys.exit(1 if left else 0)


if __name__ == "__main__":
    main()
