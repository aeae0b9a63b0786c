"""The product on real control planes, with tenants that have tokens."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from billing.services.demo.seed import seed_prices
from broker.models import Cluster, Gpu, Offering, OfferingState
from broker.services.inventory import gpu_catalogue
from ports import clock, ids
from tests.chaos.client import Answer, Client
from tests.chaos.world import OPERATOR, tenant_with_token
from tests.controlplane.plane import ADMINISTRATORS, ControlPlane
from tests.live.processes import Processes

IMAGE = "registry.example/acts:hang-0s"  # ready at once, gone at once


@dataclass
class Tenant:
    """A tenant with a project and a token, and all answers."""

    project: str
    client: Client
    leases: list[str] = field(default_factory=list)

    def ask(self, offering: str, **wanted: Any) -> Answer:
        """Request a lease once."""
        body = {"name": "job", "project": self.project, "offering": offering, "max_duration_s": 6 * 3600}
        answer = self.client.once("POST", "leases", {**body, "image": IMAGE, **wanted}, key=ids.new("key"))
        if answer.accepted:
            self.leases.append(answer.body["id"])
        return answer

    def release(self, lease: str) -> Answer:
        return self.client.once("POST", f"leases/{lease}/release", key=ids.new("key"))

    def see(self, lease: str) -> dict[str, Any]:
        return self.client.once("GET", f"leases/{lease}").body

    def ways_into(self, lease: str) -> list[dict[str, Any]]:
        return list(self.client.once("GET", f"leases/{lease}/connections").body["items"])


def join(plane: ControlPlane, processes: Processes, *, name: str, region: str, **ways: str) -> str:
    """Let a cluster join as an administrator would: set up, registered with narrow rights, followed.

    `ways` are how people come in: domain, ingress, bastion.
    """
    gpu_catalogue.load_gpu_models()
    file = processes.folder / f"{name}.kubeconfig"
    file.touch(mode=0o600)
    file.write_text(json.dumps(plane.kubeconfig("admin", ADMINISTRATORS)))
    said = StringIO()
    call_command("kube_setup", kubeconfig=Path(file), register=name, region=region, stdout=said, **ways)
    file.unlink()
    processes.follow(name)
    return said.getvalue()


def await_inventory(cluster: str, gpus: int, *, within_s: float = 120) -> None:
    """Wait until so many GPUs of a cluster are known."""
    gpus_of = Gpu.objects.filter(node__cluster=Cluster.objects.get(name=cluster))
    until(lambda: gpus_of.count() >= gpus, within_s, f"{gpus} GPUs of {cluster}")


def sell(cluster: str, gpus: int, *, within_s: float = 120) -> None:
    """Wait for a cluster's inventory, then publish all offerings of its GPUs."""
    await_inventory(cluster, gpus, within_s=within_s)
    now = clock.now()
    gpu_catalogue.derive_offerings(now=now)
    Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
    seed_prices.publish_list_prices(since=now - timedelta(hours=1), actor=OPERATOR, now=now)


def offering(profile: str, region: str, price_class: str = "on_demand", *, model: str = "H100-80GB") -> str:
    """Return the id of an offering."""
    rows = Offering.objects.filter(gpu_model=model, profile=profile, region=region, price_class=price_class)
    return str(rows.get().pk)


def tenant(processes: Processes) -> Tenant:
    """Create a tenant."""
    made = tenant_with_token(now=clock.now())
    return Tenant(made["project"], Client(processes.port, made["token"]))


def until(right: Callable[[], bool], within_s: float, what: str) -> float:
    """Wait until a condition holds; return how long it took."""
    began = time.monotonic()
    while not right():
        if time.monotonic() - began > within_s:
            raise TimeoutError(f"not within {within_s:.0f} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - began
