"""`make demo-first-day`: an operator's first cluster and a tenant's first day.

Seven kinds of nodes are in it: a T4 with 4 vCPUs, four L40S, an A100 and an H100 with MIG by NVIDIA's device plugin,
eight H100 of NVIDIA's DRA driver, a node with AMD GPUs, and one without GPUs. Then 8 of 8 GPUs are rented, spot leases
are reclaimed by notice, a private image is run, a notebook runs without a GPU, and logs, exit codes and a web terminal
are used.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

NOTICE_S, MIN_RUNTIME_S = 20, 5  # of spot leases; by default five and ten minutes
os.environ |= {"GPUBROKER_SPOT_NOTICE_S": str(NOTICE_S), "GPUBROKER_SPOT_MIN_RUNTIME_S": str(MIN_RUNTIME_S)}
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django  # noqa: E402

django.setup()

from websockets.asyncio.client import connect  # noqa: E402

from billing.models import PriceVersion  # noqa: E402
from broker.models import Gpu, Node, Offering  # noqa: E402
from broker.services.placement import available_capacity  # noqa: E402
from broker.services.secrets import registry_secrets  # noqa: E402
from ports import clock  # noqa: E402
from tenants.models import AuditEvent, Project  # noqa: E402
from tenants.services.rls import system_scope, tenant_scope  # noqa: E402
from tests.chaos.world import OPERATOR  # noqa: E402
from tests.controlplane import binaries  # noqa: E402
from tests.controlplane.kubelet_server import OUTPUT, give_kubelet_address, write_output  # noqa: E402
from tests.controlplane.nodes import Nodes  # noqa: E402
from tests.controlplane.plane import LOCAL, ControlPlane  # noqa: E402
from tests.live import installation, node_kinds  # noqa: E402
from tests.live.demo import ENTRANCES, KEY, counted, examined, say  # noqa: E402
from tests.live.first_day_screens import take_screenshots  # noqa: E402
from tests.live.installation import Tenant, until  # noqa: E402
from tests.live.processes import Processes  # noqa: E402

REGION, ACTS = "eu-north", "registry.example/acts"


class FirstDay:
    """A cluster of one operator, and a tenant."""

    def __init__(self, plane: ControlPlane, processes: Processes) -> None:
        self.plane, self.processes = plane, processes
        self.nodes = Nodes(plane.api, "north")
        self.tenant: Tenant
        self.batch = ""

    def joins(self) -> None:
        """Register a cluster with seven kinds of nodes, and examine it."""
        node_kinds.add_nodes(self.nodes)
        for entrance in ENTRANCES:
            self.plane.api.create(entrance)
        ways = {"domain": "north.gpu.example", "ingress": "ingress/nginx", "bastion": "ssh.north.gpu.example"}
        installation.join(self.plane, self.processes, name="north", region=REGION, driver="automatic", **ways)
        say(f"kube_doctor north: {examined('north')}")
        until(lambda: Gpu.objects.count() >= node_kinds.DEVICES, 120, f"{node_kinds.DEVICES} GPUs and CPU blocks")
        node_kinds.sell_everything(now=clock.now())
        for name in self.nodes.names:
            give_kubelet_address(self.plane.api, name, host=LOCAL, port=self.plane.places.kubelets)
        for node in Node.objects.order_by("name"):
            found = Gpu.objects.filter(node=node).order_by("index")
            what = "blocks of CPUs" if found and found[0].driver == "cpu" else "GPUs"
            by = f" by {found[0].driver}" if found else ""
            say(f"node {node.name}: {len(found)} {what}{by}{'; ' if node.unsold_reason else ''}{node.unsold_reason}")
        self.tenant = installation.tenant(self.processes)

    def offers(self) -> None:
        """Show what is for sale, with the CPU, memory and storage of each slice."""
        print(f"{'offering':<42}{'terms':<11}{'free':>5}{'vCPU':>7}{'memory GiB':>12}{'scratch GiB':>13}{'€/h':>8}")
        rows = Offering.objects.filter(state="published").select_related("gpu_model")
        free = available_capacity.count_available(list(rows))
        for offering in rows.order_by("gpu_model_id", "profile", "price_class"):
            price = PriceVersion.objects.filter(offering=offering).order_by("-pk").first().nano_per_hour / 10**9
            print(
                f"{offering.label:<42}{offering.price_class:<11}{free[offering.pk]:>5}{offering.cpu_milli / 1000:>7.1f}"
                f"{offering.host_memory_mib // 1024:>12}{offering.scratch_mib // 1024:>13}{price:>8.2f}",
                flush=True,
            )

    def rents_everything(self) -> None:
        """Rent 8 of 8 GPUs of one node, and the GPU of the smallest node."""
        whole = self._offering("H100", "whole-gpu")
        leases = [self._ask(whole, name=f"gpu-{number}") for number in range(node_kinds.DRA_GPUS)]
        small = self._ask(self._offering("T4", "whole-gpu"), name="t4", workload="ssh", ssh_keys=[KEY], image="")
        self._reach("active", [*leases, small])
        say(f"{len(leases)} of {node_kinds.DRA_GPUS} H100 of one node are rented, and the T4 with 4 vCPUs")
        self._release([*leases, small])

    def reclaims_spot(self) -> None:
        """Let on-demand demand for five GPUs reclaim spot leases on four of eight, by notice."""
        spot, on_demand = (self._offering("H100", "whole-gpu", terms) for terms in ("spot", "on_demand"))
        leases = [self._ask(spot, name=f"spot-{number}") for number in range(4)]
        self._reach("active", leases)
        time.sleep(MIN_RUNTIME_S + 1)
        wanted = self._ask(on_demand, name="training", quantity=5)
        began = time.monotonic()
        noticed = [lease for lease in leases if self._until_noticed(leases) and self._notice(lease)]
        say(f"notice of {NOTICE_S} s was given to {len(noticed)} of 4 spot leases; the request waits meanwhile")
        self._reach("active", [wanted], within_s=120)
        waited = time.monotonic() - began
        ends = [self._see(lease)["status"]["end_reason"] for lease in noticed]
        say(f"five GPUs on demand are active {waited:.0f} s after the request; the reclaimed: {counted(ends)}")
        if waited < NOTICE_S or set(ends) != {"preempted"} or len(noticed) != 1:
            raise SystemExit("The notice was not kept, or more was reclaimed than needed.")
        self._release([wanted, *(lease for lease in leases if lease not in noticed)])

    def runs_a_private_image(self) -> None:
        """Run an image from a private registry with a login that an admin saved."""
        with system_scope():
            project = Project.objects.get(pk=self.tenant.project)
        with tenant_scope(project.tenant_id):
            login = registry_secrets.create_registry_secret(
                project=project,
                name="REGISTRY",
                registry="registry.example",
                username="kestrel",
                password="pull-2f7a91",
                actor=OPERATOR,
                now=clock.now(),
            )
        lease = self._ask(self._offering("L40S", "whole-gpu"), name="private", workload="own", pull_secret=login.pk)
        self._reach("active", [lease])
        (pod,) = self.plane.api.items("/api/v1/pods", labelSelector=f"gpubroker.dev/lease={lease}")
        names = [each["name"] for each in pod["spec"]["imagePullSecrets"]]
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/secrets/{names[0]}"
        kind = self.plane.api.get(path)["type"]
        say(f"{pod['spec']['containers'][0]['image']} is pulled with {names[0]} ({kind})")
        self._release([lease])
        self.plane.api.until_gone(path)
        say("the login is gone from the cluster with its lease")

    def runs_a_notebook_without_gpu(self) -> None:
        """Run JupyterLab on 4 vCPUs of the node without GPUs."""
        lease = self._ask(self._offering("CPU", "4vcpu"), name="notebook", workload="jupyter", image="")
        self._reach("active", [lease])
        (pod,) = self.plane.api.items("/api/v1/pods", labelSelector=f"gpubroker.dev/lease={lease}")
        say(f"it runs on {pod['spec']['nodeName']} with {pod['spec']['containers'][0]['resources']['limits']}")
        self._release([lease])

    def reads_output(self) -> None:
        """Read the log of a batch while it runs, and its exit code after it failed."""
        env = {"WANDB_API_KEY": "w-5d1f0c77a9"}
        batch = {"workload": "batch", "image": f"{ACTS}:fail-12s", "command": "python train.py", "env": env}
        lease = self.batch = self._ask(self._offering("L40S", "whole-gpu"), name="train", **batch)
        self._reach("active", [lease])
        lines = ["INFO loading data", f"logging in with {env['WANDB_API_KEY']}", "ERROR CUDA out of memory"]
        now = datetime.now(UTC)
        write_output(self.plane.folder / OUTPUT, [(now, line) for line in lines])
        until(lambda: len(self._output(lease)) == len(lines), 30, "the output is collected")
        say("while it runs:")
        self._print_output(lease)
        self._reach("released", [lease])
        found = self._see(lease)
        say(f"after its end: exit code {found['status']['exit_code']}, {found['status']['end_reason']}")
        self._print_output(lease)
        if found["status"]["exit_code"] != 1 or env["WANDB_API_KEY"] in str(self._output(lease)):
            raise SystemExit("The exit code is wrong, or a secret is in the log.")

    def opens_a_terminal(self) -> None:
        """Open a web terminal in a lease, and type."""
        lease = self._ask(self._offering("L40S", "whole-gpu"), name="box", workload="ssh", ssh_keys=[KEY], image="")
        self._reach("active", [lease])
        address = f"ws://{LOCAL}:{self.processes.port + 1}/api/v1/terminals/{lease}"
        shown = asyncio.run(self._type(address, "echo terminal-$((6*7))", "terminal-42"))
        print("\n".join(f"    {line}" for line in shown.splitlines()), flush=True)
        with system_scope():
            recorded = AuditEvent.objects.filter(subject_id=lease, action__contains="terminal").order_by("pk")
            say(f"in the audit log: {', '.join(recorded.values_list('action', flat=True))}")
        screens = take_screenshots(self.processes.port, self.tenant.project, box=lease, batch=self.batch)
        say(f"screenshots: {screens}")
        self._release([lease])

    async def _type(self, address: str, line: str, wanted: str) -> str:
        """Type a line into a terminal, and return what was shown until the wanted text came."""
        shown = ""
        headers = {"Authorization": f"Bearer {self.tenant.client.token}"}
        async with connect(address, additional_headers=headers) as terminal, asyncio.timeout(30):
            await terminal.send(f"{line}\n".encode())
            while wanted not in shown:
                received = await terminal.recv()
                shown += received.decode(errors="replace") if isinstance(received, bytes) else ""
        return shown

    def _offering(self, model: str, profile: str, terms: str = "on_demand") -> str:
        rows = Offering.objects.filter(gpu_model__name__contains=model, profile=profile, price_class=terms)
        return str(rows.order_by("pk")[0].pk)

    def _ask(self, offering: str, **wanted: Any) -> str:
        answer = self.tenant.ask(offering, **wanted)
        if not answer.accepted:
            raise RuntimeError(f"{answer.status} {answer.body}")
        return str(answer.body["id"])

    def _see(self, lease: str) -> dict[str, Any]:
        return self.tenant.see(lease)

    def _reach(self, state: str, leases: list[str], within_s: float = 120) -> None:
        try:
            until(lambda: all(self._see(each)["status"]["state"] == state for each in leases), within_s, state)
        except TimeoutError:
            for lease in leases:
                print(json.dumps(self._see(lease)["status"]))
            raise

    def _release(self, leases: list[str]) -> None:
        for lease in leases:
            self.tenant.release(lease)
        self._reach("released", leases)

    def _notice(self, lease: str) -> object:
        return self._see(lease)["status"].get("reclaim_at")

    def _until_noticed(self, leases: list[str]) -> bool:
        until(lambda: any(self._notice(lease) for lease in leases), 60, "notice is given")
        return True

    def _output(self, lease: str) -> list[dict[str, Any]]:
        body = self.tenant.client.once("GET", f"leases/{lease}/logs?source=program").body
        return list(body.get("items", []))

    def _print_output(self, lease: str) -> None:
        for line in self._output(lease):
            print(f"    {line['at'][11:19]} {line['level'] or '-':<8} {line['text']}", flush=True)


def main() -> None:
    if missing := binaries.missing_binaries():
        sys.exit(f"There is no control plane here ({', '.join(missing)}). Run `make controlplane`, then this again.")
    began = time.monotonic()
    with ExitStack() as running:
        processes = Processes()
        os.environ["GPUBROKER_PUBLIC_URL"] = f"http://{LOCAL}:{processes.port}"
        os.environ["GPUBROKER_EVENTS_URL"] = f"http://{LOCAL}:{processes.port + 1}"
        running.enter_context(processes)
        events = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--no-access-log"]
        processes.start("events", [*events, "--host", LOCAL, "--port", str(processes.port + 1)])
        plane = running.enter_context(ControlPlane())
        say(f"a control plane and the product are up after {time.monotonic() - began:.0f} s")
        day = FirstDay(plane, processes)
        acts = (day.joins, day.offers, day.rents_everything, day.reclaims_spot, day.runs_a_private_image)
        for act in (*acts, day.runs_a_notebook_without_gpu, day.reads_output, day.opens_a_terminal):
            print(f"\n{(act.__doc__ or '').strip()}", flush=True)
            act()
    say(f"done in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
