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
    r"(placed on (?:[^,]*, ){4}).*": r"\1…",  # a cause is cut to 200 characters, and names differ in length
    r"\d\d\d\d-\d\d-\d\d|\d\d:\d\d(:\d\d)?": "<moment>",
}


@dataclass(frozen=True)
class Published:
    """A node whose GPUs are published as devices, for claims."""

    gpus: int = 1


Machine = GpuNode | Published


@dataclass
class Site:
    """A cluster of the product with the names of its nodes."""

    cluster: Cluster
    driver: SliceDriver
    hosts: list[str]

    @property
    def nodes(self) -> list[Node]:
        by_name = {node.name: node for node in Node.objects.filter(cluster=self.cluster)}
        return [by_name[host] for host in self.hosts]


@dataclass
class World(ABC):
    """Common interface of the simulated and the real environment of behaviour tests."""

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
        """Register a cluster; faults can be injected into a fragile one."""

    @abstractmethod
    def add(self, machine: Machine, way: SliceDriver) -> str:
        """Add a node to the cluster, and return its name."""

    @abstractmethod
    def reported_by(self, site: Site) -> tuple[list[NodeSeen], list[ResourceSlice]]:
        """Return the nodes and resource slices that the cluster reports."""

    def add_cluster(
        self,
        *machines: Machine,
        driver: str = "device_plugin",
        region: str = REGION,
        fragile: bool = False,
        **options: Any,
    ) -> Site:
        """Set up a cluster with these nodes, and publish offerings for them."""
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
        """Update the inventory from the cluster; return its problems."""
        problems = cluster_registration.update_inventory(site.cluster, self.reported(site), now=self.sim.now)
        gpu_catalogue.derive_offerings(now=self.sim.now)
        Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
        return [self.normalise(problem) for problem in problems]

    def reported(self, site: Site) -> list[Any]:
        nodes, slices = self.reported_by(site)
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
        """Return the offering of a profile; publish a draft or missing one."""
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

    def add_tenant(self, name: str = "Kestrel", *, units: int = 1000) -> TenantContext:
        made = create_tenant(name, units=units)
        self.homes.append(made)
        return made

    # What people do

    def request_lease(
        self,
        owner: TenantContext,
        what: Offering,
        program: str = "runs",
        *,
        project: Project | None = None,
        **wanted: Any,
    ) -> Lease:
        """Request a lease with a scripted program, without waiting for it."""
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
        """Return the refusal of a call that must be refused, and record it."""
        try:
            act()
        except ProblemError as refused:
            self.record(f"refused: {refused.code}: {refused.detail}")
            return refused
        raise AssertionError("it was not refused")

    # Time

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Let time pass while the workers run."""

    @abstractmethod
    def run_without_workers(self, seconds: float) -> None:
        """Let time pass without workers; short programs end meanwhile."""

    @abstractmethod
    def run_briefly(self) -> None:
        """Run the workers for a short time."""

    @abstractmethod
    def attempts(self) -> Iterable[int]:
        """Yield once per attempt of a wait with a timeout."""

    def until(self, lease: Lease, state: str) -> Lease:
        """Run the workers until a lease is in a state."""
        return self.until_all([lease], state)[0]

    def until_all(self, leases: Iterable[Lease], state: str) -> list[Lease]:
        leases = list(leases)
        seen: list[Lease] = []
        for _ in self.attempts():
            seen = [reload_lease(lease) for lease in leases]
            if all(lease.state == state for lease in seen):
                return seen
            self.run_briefly()
        raise AssertionError([f"{each.state}, not {state}: {each.progress} {each.pending_reason}" for each in seen])

    def until_true(self, right: Callable[[], object], what: str) -> None:
        for _ in self.attempts():
            if right():
                return
            self.run_briefly()
        raise AssertionError(f"never: {what}")

    def run(self, owner: TenantContext, what: Offering, program: str = "runs", **wanted: Any) -> Lease:
        """Request a lease, wait until it is active, and return it."""
        return self.until(self.request_lease(owner, what, program, **wanted), "active")

    def end(self, *leases: Lease) -> list[Lease]:
        """Release leases and wait until they are gone."""
        for lease in leases:
            self.release(lease)
        return self.until_all(leases, "released")

    def pending_reason(self, lease: Lease) -> str:
        return self.normalise(reload_lease(lease).pending_reason)

    def progress(self, lease: Lease) -> str:
        """Return the progress text that the tenant sees."""
        return str(reload_lease(lease).progress.get("text", ""))

    def condition_text(self, lease: Lease) -> str:
        """Return the condition text that the tenant sees."""
        return " ".join(reload_lease(lease).conditions.values())

    def last_cause(self, lease: Lease, state: str = "") -> str:
        return [step.cause for step in transitions_of(lease) if state in ("", step.after)][-1]

    def charged_seconds(self, lease: Lease) -> float:
        """Return how many seconds of a lease are charged."""
        lease = reload_lease(lease)
        assert lease.active_at is not None
        assert lease.ended_at is not None
        return (lease.ended_at - lease.active_at.replace(microsecond=0)).total_seconds()

    def host_of(self, lease: Lease) -> str:
        return Gpu.objects.values_list("node__name", flat=True).get(pk=held_allocations(lease)[0].gpu_id)

    def add_node(self, site: Site, machine: Machine) -> None:
        """Add a node to a cluster, and update its inventory as the agent does."""
        host = self.add(machine, site.driver)
        self._call(host, "node")
        site.hosts.append(host)
        self.take_inventory(site)
        outbox.enqueue("broker.run_queue", f"{MODEL}|{site.cluster.region}", now=self.sim.now)

    def is_ready(self, lease: Lease) -> bool:
        """Return whether the lease was observed as ready just now."""
        lease = reload_lease(lease)
        return lease.seen_at is not None and lease.seen_at >= self.sim.now - timedelta(seconds=1)

    def fail_image_pull(self, lease: Lease) -> None:
        """Wait until the image pull has failed for longer than the timeout."""
        self.until_true(lambda: reload_lease(lease).state != "queued", "that somebody tries")
        self.until_true(
            lambda: "cannot be pulled" in self.progress(lease) or reload_lease(lease).end_reason != "none",
            "words about the image",
        )
        self.wait(150)

    def kill_worker_during_start(self, lease: Lease) -> None:
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
    def lose_node(self, host: str) -> None:
        """Power off a node."""

    @abstractmethod
    def recover_node(self, host: str) -> None:
        """Power a node on again."""

    @abstractmethod
    def set_gpu_count(self, site: Site, host: str, gpus: int) -> None:
        """Set the number of GPUs that a node reports."""

    @abstractmethod
    def evict_pod(self, lease: Lease) -> None:
        """Evict the pod of a lease; its controller creates another."""

    @abstractmethod
    def edit_objects(self, lease: Lease) -> None:
        """Change the controller of the pod manually, so that the pod is deleted."""

    @abstractmethod
    def end_pod(self, lease: Lease, reason: str) -> None:
        """Let the cluster end the pod for a reason: PreemptionByScheduler or Evicted."""

    @abstractmethod
    def delete_all_of(self, lease: Lease) -> None:
        """Delete all objects of a lease manually."""

    @abstractmethod
    def block_deletion(self, lease: Lease) -> Callable[[], None]:
        """Block the deletion of a pod; return a function that unblocks it."""

    @abstractmethod
    def unblock_deletions(self) -> None:
        """Unblock all deletions."""

    @abstractmethod
    def delete_namespace(self, owner: TenantContext) -> None:
        """Delete the namespace of a tenant's first project, with everything in it."""

    @abstractmethod
    def create_foreign_object(self, lease: Lease) -> None:
        """Create a foreign object with the name of the lease's next generation."""

    @abstractmethod
    def inject_fault(self, what: str, *, times: int = 1) -> Callable[[], None]:
        """Inject a fault into the cluster's answers; return a function that ends it."""

    # What is seen

    @abstractmethod
    def storage_identity(self, volume: Volume) -> str:
        """Return the identity of a volume's storage."""

    @abstractmethod
    def count_leases(self) -> int:
        """Count the leases with objects in the clusters."""

    @abstractmethod
    def check_limits(self, lease: Lease, **limits: str) -> None:
        """Check the resource limits of the lease's pods."""

    def record(self, what: object) -> None:
        """Record a text that must be equal in both environments."""
        self.notes.append(self.normalise(str(what)))

    def normalise(self, text: str) -> str:
        """Return a text without ids, names and times of this environment."""
        for name, found in sorted(self.names.items(), key=lambda each: -len(each[0])):
            text = text.replace(name, found)
        for number, lease in enumerate(self.leases):
            text = text.replace(lease.pk, f"<lease {number}>").replace(lease.pk[4:], f"<lease {number}>")
        for pattern, found in OWN_WORDS.items():
            text = re.sub(pattern, found, text)
        return text

    def record_connections(self, lease: Lease) -> list[LeaseConnection]:
        """Record the connections of a lease without their secret."""
        for each in self.homes:
            self.names[each.project.pk[4:]] = "<project>"
        with tenant_scope(lease.tenant_id):
            ways = lease_connections_of(Lease.objects.get(pk=lease.pk))
        secret = next((way.secret for way in ways if way.secret), "no secret")
        for way in ways:
            self.record(f"{way.label}: {way.line.replace(secret, '<secret>')} {'link' if way.is_link else ''}")
        return ways

    def outcome(self) -> dict[str, Any]:
        """Record states, transitions, charges and quotas of all leases."""
        return {
            "notes": self.notes,
            "leases": [self._lease_state(lease) for lease in self.leases],
            "used": [made.quota_used(QuotaKind.UNITS) for made in self.homes],
            "there": self.count_leases(),
        }

    def _lease_state(self, wanted: Lease) -> dict[str, Any]:
        lease, steps, places = reload_lease(wanted), transitions_of(wanted), held_allocations(wanted)
        gpus = {each.gpu_id for each in places}
        nodes = {Gpu.objects.values_list("node_id", flat=True).get(pk=gpu) for gpu in gpus}
        return {
            "state": lease.state,
            "path": [f"{step.after}: {self.normalise(step.cause)}" for step in steps],
            "why": lease.end_reason,
            "generation": lease.generation,
            "was active": lease.active_at is not None,
            "waits for": self.normalise(lease.pending_reason),
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
    """Parse manifests as the product parses answers of an API server."""
    nodes, slices = [], []
    for each in manifests:
        if each["kind"] == "Node":
            nodes.append(msgspec.convert(each, NodeSeen, strict=False))
        else:
            slices.append(msgspec.convert(each, ResourceSlice, strict=False))
    return nodes, slices
