"""The product with fleet and tenants, on any kind of cluster.

A behaviour asks and breaks things through a World. There is one of simulated clusters and one of a real control plane;
what happened is written down without names and moments, so that the two records can be laid side by side.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec

from broker.domain.geometry.quota_units import quota_milli_units
from broker.domain.lifecycle.states import EndReason, Isolation
from broker.models import Cluster, Gpu, Lease, Node, Offering, OfferingState, Volume
from broker.provisioners.kubernetes.client.objects import ClusterNode as NodeSeen
from broker.provisioners.kubernetes.client.objects import ResourceSlice
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.drivers.driver_registry import create_driver
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import cluster_provisioners, gpu_catalogue
from broker.services.leases.lease_connections import LeaseConnection, lease_connections_of
from broker.services.leases.lifecycle import eviction, extension, termination
from broker.services.queue import lease_placement
from broker.services.reconciler import lease_reconciler
from ports import outbox
from tenants.models import Project, QuotaKind
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope
from tests.broker.domain.fleet import MODELS
from tests.cluster.installed import some_id
from tests.controlplane.nodes import GpuNode
from tests.simulation import (
    MODEL,
    OPERATOR,
    REGION,
    Simulation,
    TenantContext,
    create_tenant,
    held_allocations,
    reload_lease,
    transitions_of,
)

ACTS = "registry.example/acts"
# What a program does, as the kubelets of a real control plane are told, and as the simulated cluster is.
PROGRAMS = {
    "runs": (f"{ACTS}:pull-0s", "own/image"),
    "slow": (f"{ACTS}:pull-2s", "slow/image"),
    "endless": (f"{ACTS}:pull-600s", "slow/endless"),
    "never pulls": (f"{ACTS}:never-pulls", "refuse/nothing"),
    "is done": (f"{ACTS}:succeed-2s", "brief/done"),
    "fails": (f"{ACTS}:fail-2s", "fails/often"),
    "takes too much memory": (f"{ACTS}:oom-2s", "hungry/program"),
    "takes its time to go": (f"{ACTS}:hang-2s", "slow/leaver"),
}
# What each cluster says in words of its own, and means the same by: told under one name.
OWN_WORDS = {
    r"its pod no longer exists|it is no longer in the cluster": "<gone>",
    r"the registry (says it does not exist|knows no such image)|Back-off pulling image": "<no such image>",
    r"(?<=the cluster does not respond: ).*": "<silence>",
    r"ConfigMap (<project space>/)?": "",
    r"\d\d\d\d-\d\d-\d\d|\d\d:\d\d(:\d\d)?": "<moment>",
}


@dataclass(frozen=True)
class Published:
    """A node whose GPUs are published as devices, for claims."""

    gpus: int = 1


Machine = GpuNode | Published


@dataclass
class Site:
    """One cluster as the product knows it, and the names of its nodes there."""

    cluster: Cluster
    driver: SliceDriver
    hosts: list[str]

    @property
    def nodes(self) -> list[Node]:
        by_name = {node.name: node for node in Node.objects.filter(cluster=self.cluster)}
        return [by_name[host] for host in self.hosts]


@dataclass
class World(ABC):
    """What a behaviour plays in."""

    sim: Simulation
    sites: list[Site] = field(default_factory=list)
    homes: list[TenantContext] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # by what the record calls them
    real = False

    def __post_init__(self) -> None:
        self.mark = some_id("wld")[4:14]
        gpu_catalogue.load_gpu_models()

    # The ground

    @abstractmethod
    def join(self, name: str, region: str, driver: str, options: dict[str, Any], fragile: bool) -> Cluster:
        """Make the cluster known; a fragile one can be troubled."""

    @abstractmethod
    def add(self, machine: Machine, way: SliceDriver) -> str:
        """Put a machine into the cluster, and return its name there."""

    @abstractmethod
    def seen_of(self, site: Site) -> tuple[list[NodeSeen], list[ResourceSlice]]:
        """Return what the cluster reports of its machines."""

    def stand(
        self,
        *machines: Machine,
        driver: str = "device_plugin",
        region: str = REGION,
        fragile: bool = False,
        **options: Any,
    ) -> Site:
        """Set up a cluster with these machines, and sell what they can be."""
        way = create_driver(driver, options, MODELS)
        cluster = self.join(f"{self.mark}-c{len(self.sites)}", region, driver, options, fragile)
        self.names[cluster.name] = f"<cluster {len(self.sites)}>"
        hosts = [self.add(machine, way) for machine in machines]
        for host in hosts:
            self._call(host, "node")
        site = Site(cluster, way, hosts)
        self.sites.append(site)
        self.take_inventory(site)
        return site

    def _call(self, name: str, kind: str) -> None:
        self.names[name] = f"<{kind} {sum(told.startswith(f'<{kind}') for told in self.names.values())}>"

    def take_inventory(self, site: Site) -> list[str]:
        """Read the reported inventory; return what cannot be sold."""
        problems = cluster_registration.update_inventory(site.cluster, self.reported(site), now=self.sim.now)
        gpu_catalogue.derive_offerings(now=self.sim.now)
        Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
        return [self.plain(problem) for problem in problems]

    def reported(self, site: Site) -> list[Any]:
        nodes, slices = self.seen_of(site)
        found = site.driver.inventory(nodes, slices)
        return [each for each in found if each.name in site.hosts]

    def offering(
        self,
        profile: str = "whole-gpu",
        *,
        price_class: str = "on_demand",
        isolation: str = "",
        region: str = REGION,
    ) -> Offering:
        """Return what is sold under this shape; what nobody derived is put on sale."""
        isolation = isolation or str(Isolation.HARDWARE if "g." in profile else Isolation.DEVICE)
        shape = gpu_catalogue.profile_named(MODEL, profile, isolation)
        sold, _ = Offering.objects.select_related("gpu_model").get_or_create(
            gpu_model_id=MODEL,
            profile=profile,
            isolation=isolation,
            price_class=price_class,
            region=region,
            defaults={
                "label": f"H100 {profile}",
                "milli_units": quota_milli_units(shape, gpu_catalogue.gpu_model_spec(MODEL)),
                "memory_gb": 10,
                "state": OfferingState.PUBLISHED,
                "created_at": self.sim.now,
            },
        )
        return sold

    def home(self, name: str = "Kestrel", *, units: int = 1000) -> TenantContext:
        made = create_tenant(name, units=units)
        self.homes.append(made)
        return made

    # What people do

    def ask(
        self,
        owner: TenantContext,
        what: Offering,
        program: str = "runs",
        *,
        project: Project | None = None,
        **wanted: Any,
    ) -> Lease:
        """Ask for a lease whose program does something, and leave it in the queue."""
        values = {"name": f"job-{len(self.leases)}", "image": self.image(program), "workload": "own", **wanted}
        lease = self.sim.request_lease(owner, what, project=project, **values)
        self.leases.append(lease)
        return lease

    def image(self, program: str) -> str:
        image = PROGRAMS[program][0 if self.real else 1]
        self.names[image] = f"<image that {program}>"
        return image

    def release(self, lease: Lease) -> None:
        with tenant_scope(lease.tenant_id):
            current = Lease.objects.select_related("offering").get(pk=lease.pk)
            termination.release_lease(current, reason=EndReason.BY_TENANT, now=self.sim.now)

    def evict(self, lease: Lease, why: str = "the node is needed") -> None:
        eviction.evict_lease(lease.pk, why=why, actor=OPERATOR, now=self.sim.now)

    def extend(self, lease: Lease, more_s: int) -> Lease:
        owner = next(each for each in self.homes if each.tenant.pk == lease.tenant_id)
        with tenant_scope(lease.tenant_id):
            return extension.extend_lease(reload_lease(lease), more_s=more_s, actor=owner.actor, now=self.sim.now)

    def refused(self, act: Callable[[], object]) -> ProblemError:
        """Do what must be refused, and write down how it was."""
        try:
            act()
        except ProblemError as refused:
            self.note(f"refused: {refused.code}: {refused.detail}")
            return refused
        raise AssertionError("it was not refused")

    # Time

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Let time pass, and the workers work."""

    @abstractmethod
    def nobody_looks(self, seconds: float) -> None:
        """Let time pass in which no worker works; short programs come to their end."""

    @abstractmethod
    def soon(self) -> None:
        """Let the workers work for a moment."""

    @abstractmethod
    def patience(self) -> Iterable[int]:
        """Yield as often as it is worth looking for something that shall happen."""

    def until(self, lease: Lease, state: str) -> Lease:
        """Let the workers work until a lease is in a state."""
        return self.until_all([lease], state)[0]

    def until_all(self, leases: Iterable[Lease], state: str) -> list[Lease]:
        leases = list(leases)
        seen: list[Lease] = []
        for _ in self.patience():
            seen = [reload_lease(lease) for lease in leases]
            if all(lease.state == state for lease in seen):
                return seen
            self.soon()
        raise AssertionError([f"{each.state}, not {state}: {each.progress} {each.pending_reason}" for each in seen])

    def until_true(self, right: Callable[[], object], what: str) -> None:
        for _ in self.patience():
            if right():
                return
            self.soon()
        raise AssertionError(f"never: {what}")

    def run(self, owner: TenantContext, what: Offering, program: str = "runs", **wanted: Any) -> Lease:
        """Return a lease that is active."""
        return self.until(self.ask(owner, what, program, **wanted), "active")

    def end(self, *leases: Lease) -> list[Lease]:
        """Release leases and wait until they are gone."""
        for lease in leases:
            self.release(lease)
        return self.until_all(leases, "released")

    def waits(self, lease: Lease) -> str:
        return self.plain(reload_lease(lease).pending_reason)

    def progress(self, lease: Lease) -> str:
        """Return the progress text that the tenant sees."""
        return str(reload_lease(lease).progress.get("text", ""))

    def ails(self, lease: Lease) -> str:
        """Return the condition text that the tenant sees."""
        return " ".join(reload_lease(lease).conditions.values())

    def last_cause(self, lease: Lease, state: str = "") -> str:
        return [step.cause for step in transitions_of(lease) if state in ("", step.after)][-1]

    def lasted(self, lease: Lease) -> float:
        """Return for how many seconds it is charged."""
        lease = reload_lease(lease)
        assert lease.active_at is not None
        assert lease.ended_at is not None
        return (lease.ended_at - lease.active_at.replace(microsecond=0)).total_seconds()

    def host_of(self, lease: Lease) -> str:
        return Gpu.objects.values_list("node__name", flat=True).get(pk=held_allocations(lease)[0].gpu_id)

    def grow(self, site: Site, machine: Machine) -> None:
        """Add a machine to a cluster, and take its inventory as the agent does."""
        host = self.add(machine, site.driver)
        self._call(host, "node")
        site.hosts.append(host)
        self.take_inventory(site)
        outbox.enqueue("broker.run_queue", f"{MODEL}|{site.cluster.region}", now=self.sim.now)

    def is_ready(self, lease: Lease) -> bool:
        """Tell whether it was just seen to be well."""
        lease = reload_lease(lease)
        return lease.seen_at is not None and lease.seen_at >= self.sim.now - timedelta(seconds=1)

    def hopeless(self, lease: Lease) -> None:
        """Wait until an image is seen not to come, and then longer than anybody hopes."""
        self.until_true(lambda: reload_lease(lease).state != "queued", "that somebody tries")
        self.until_true(
            lambda: "cannot be pulled" in self.progress(lease) or reload_lease(lease).end_reason != "none",
            "words about the image",
        )
        self.wait(150)

    def die_while_working(self, lease: Lease) -> None:
        """Place a lease, start it in the cluster, and kill the worker."""
        with tenant_scope(lease.tenant_id):
            current = Lease.objects.select_related("offering").get(pk=lease.pk)
            assert lease_placement.place_lease(current, now=self.sim.now)
            order = lease_reconciler._claim(current, self.sim.now)
        assert order is not None
        cluster_provisioners.provisioner_of(order).ensure(order, now=self.sim.now)
        self.sim.messages.clear()

    # What is broken

    @abstractmethod
    def lose(self, host: str) -> None:
        """Let a node fall silent."""

    @abstractmethod
    def find(self, host: str) -> None:
        """Cancel back."""

    @abstractmethod
    def give(self, site: Site, host: str, gpus: int) -> None:
        """Let a node report this many GPUs from now on."""

    @abstractmethod
    def take_away_pod(self, lease: Lease) -> None:
        """Evict its pod: what keeps it makes another."""

    @abstractmethod
    def edit(self, lease: Lease) -> None:
        """Change by hand what keeps its pod, so that it goes."""

    @abstractmethod
    def push_out(self, lease: Lease, reason: str) -> None:
        """Let the cluster end its pod for good: PreemptionByScheduler, or Evicted."""

    @abstractmethod
    def delete_all_of(self, lease: Lease) -> None:
        """Delete what the lease is in the cluster, by hand."""

    @abstractmethod
    def hold_up(self, lease: Lease) -> Callable[[], None]:
        """Let something of it never go, until what is returned is called."""

    @abstractmethod
    def let_go(self) -> None:
        """Let everything go that is held up."""

    @abstractmethod
    def delete_namespace(self, owner: TenantContext) -> None:
        """Delete the namespace of a tenant's first project, with everything in it."""

    @abstractmethod
    def squat(self, lease: Lease) -> None:
        """Let a foreign object have the name that the lease's next generation will want."""

    @abstractmethod
    def trouble(self, what: str, *, times: int = 1) -> Callable[[], None]:
        """Let the cluster answer like this for a while; what is returned ends it."""

    # What is seen

    @abstractmethod
    def kept(self, volume: Volume) -> str:
        """Return what identifies a volume's storage."""

    @abstractmethod
    def there(self) -> int:
        """Count what is there of our leases in the clusters."""

    @abstractmethod
    def asks(self, lease: Lease, **limits: str) -> None:
        """Compare the requests of its pods with what is needed."""

    def note(self, what: object) -> None:
        """Write something down that must be the same wherever it is played."""
        self.notes.append(self.plain(str(what)))

    def plain(self, text: str) -> str:
        """Return a text without what only this world calls things, and without moments."""
        for name, found in sorted(self.names.items(), key=lambda each: -len(each[0])):
            text = text.replace(name, found)
        for number, lease in enumerate(self.leases):
            text = text.replace(lease.pk, f"<lease {number}>").replace(lease.pk[4:], f"<lease {number}>")
        for pattern, found in OWN_WORDS.items():
            text = re.sub(pattern, found, text)
        return text

    def note_ways(self, lease: Lease) -> list[LeaseConnection]:
        """Write down how people get in, without the secret that lets them."""
        for each in self.homes:
            self.names[each.project.pk[4:]] = "<project>"
        with tenant_scope(lease.tenant_id):
            ways = lease_connections_of(Lease.objects.get(pk=lease.pk))
        secret = next((way.secret for way in ways if way.secret), "no secret")
        for way in ways:
            self.note(f"{way.label}: {way.line.replace(secret, '<secret>')} {'link' if way.is_link else ''}")
        return ways

    def outcome(self) -> dict[str, Any]:
        """Write down everything that people and books know of what happened."""
        return {
            "notes": self.notes,
            "leases": [self._lease_state(lease) for lease in self.leases],
            "used": [made.quota_used(QuotaKind.UNITS) for made in self.homes],
            "there": self.there(),
        }

    def _lease_state(self, wanted: Lease) -> dict[str, Any]:
        lease, steps, places = reload_lease(wanted), transitions_of(wanted), held_allocations(wanted)
        gpus = {each.gpu_id for each in places}
        nodes = {Gpu.objects.values_list("node_id", flat=True).get(pk=gpu) for gpu in gpus}
        return {
            "state": lease.state,
            "path": [f"{step.after}: {self.plain(step.cause)}" for step in steps],
            "why": lease.end_reason,
            "generation": lease.generation,
            "was active": lease.active_at is not None,
            "waits for": self.plain(lease.pending_reason),
            "conditions": sorted(lease.conditions),
            "places": sorted(each.profile for each in places),
            "on": [len(gpus), len(nodes)],
            "lasts": lease.max_duration_s,
            "its end": None
            if not (lease.ends_at and lease.active_at)
            else lease.active_seconds
            + round((lease.ends_at - lease.active_at.replace(microsecond=0)) / timedelta(seconds=1)),
        }


def objects_of(manifests: Iterable[dict[str, Any]]) -> tuple[list[NodeSeen], list[ResourceSlice]]:
    """Read manifests as the product reads what a server answers."""
    nodes, slices = [], []
    for each in manifests:
        if each["kind"] == "Node":
            nodes.append(msgspec.convert(each, NodeSeen, strict=False))
        else:
            slices.append(msgspec.convert(each, ResourceSlice, strict=False))
    return nodes, slices
