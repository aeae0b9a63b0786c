"""Behaviour tests on simulated clusters, without real time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from broker.models import Cluster, Lease, SimulatedPod, Volume
from broker.provisioners.base import ClusterUnreachable, Observation, ObservedState, ProvisionSpec, spec_name
from broker.provisioners.kubernetes.observe.pod_faults import POD_RULES, UNKNOWN_DISRUPTION, match_rule
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.clusters.health import node_loss
from tests.cluster.behaviours.world import Machine, Site, World, objects_of
from tests.controlplane import devices
from tests.controlplane.nodes import GpuNode
from tests.simulation import TenantContext, reload_lease

SOON_S, LONG_S = 1.0, 300.0


class Disturbed(SimulatedProvisioner):
    """A simulated cluster whose answers a test can change."""

    fates: ClassVar[dict[str, Observation]] = {}  # what became of an order whatever the cluster would say
    troubles: ClassVar[list["Trouble"]] = []

    def ensure(self, order: ProvisionSpec, *, now: Any) -> Observation:
        found = self._observe(order, "ensure")
        return found or super().ensure(order, now=now)

    def observe(self, order: ProvisionSpec, *, now: Any) -> Observation:
        found = self._observe(order, "observe")
        return found or super().observe(order, now=now)

    def remove(self, order: ProvisionSpec, *, now: Any) -> Observation:
        found = self._observe(order, "remove")
        return found or super().remove(order, now=now)

    def _observe(self, order: ProvisionSpec, verb: str) -> Observation | None:
        for trouble in self.troubles:
            if trouble.times > 0 and verb in trouble.verbs and order.cluster in trouble.clusters:
                trouble.times -= 1
                if isinstance(trouble.answer, Exception):
                    raise trouble.answer
                return trouble.answer
        return None if verb == "remove" else self.fates.get(order.name)


@dataclass
class Trouble:
    """Faults that replace the next few calls."""

    verbs: tuple[str, ...]
    answer: Exception | Observation
    times: int
    clusters: tuple[str, ...]


ALL = ("ensure", "observe", "remove")
ANSWERS: dict[str, tuple[tuple[str, ...], Exception | Observation]] = {
    "409 on apply": (("ensure",), ClusterUnreachable("it changed in the meantime: try again", again_in_s=0.5)),
    "409 on delete": (("remove",), ClusterUnreachable("it changed in the meantime: other uid", again_in_s=0.5)),
    "403 quota": (
        ("ensure",),
        Observation(ObservedState.PENDING, "the project's resource quota in the cluster is exhausted", again_in_s=30),
    ),
    "422": (
        ("ensure",),
        Observation(ObservedState.REFUSED, "the cluster rejected it: spec.template: Invalid value"),
    ),
    "429": (ALL, ClusterUnreachable("too many requests", again_in_s=1)),
    "503": (ALL, ClusterUnreachable("unavailable", again_in_s=1)),
    "silence": (ALL, ClusterUnreachable("timed out after 5 s")),
    "401": (ALL, ClusterUnreachable("the cluster denies the broker access: Unauthorized", again_in_s=30)),
    "403": (ALL, ClusterUnreachable("the cluster denies the broker access: forbidden", again_in_s=30)),
    "nothing there": (("observe",), Observation(ObservedState.GONE, "it is no longer in the cluster")),
}


@dataclass
class SimulatedWorld(World):
    """Simulated clusters in the database, on the test's clock."""

    machines: dict[str, Machine] = field(default_factory=dict)
    fewer: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        Disturbed.fates.clear()
        Disturbed.troubles.clear()

    def join(self, name: str, region: str, driver: str, options: dict[str, Any], fragile: bool) -> Cluster:
        return Cluster.objects.create(
            name=name, region=region, driver=driver, driver_options=options, created_at=self.sim.now
        )

    def add(self, machine: Machine, way: object) -> str:
        host = f"{self.mark}-n{len(self.machines)}"
        self.machines[host] = machine
        return host

    def reported_by(self, site: Site) -> Any:
        return objects_of(manifest for host in site.hosts for manifest in self._manifests(host))

    def _manifests(self, host: str) -> Iterable[dict[str, Any]]:
        machine = self.machines[host]
        node = machine if isinstance(machine, GpuNode) else GpuNode(gpus=0)
        manifest = node.manifest(host)
        if host in self.fewer:
            manifest["status"]["allocatable"]["nvidia.com/gpu"] = str(self.fewer[host])
        yield manifest
        if not isinstance(machine, GpuNode):
            yield from devices.published(host, gpus=machine.gpus)

    def wait(self, seconds: float) -> None:
        while seconds > LONG_S:  # the sweep alone must do, and in long silences seldom
            self.sim.messages.clear()
            self.sim.clock.at += timedelta(seconds=min(seconds / 20, seconds - LONG_S + 1))
            seconds -= min(seconds / 20, seconds - LONG_S + 1)
            self.sim.sweep()
        self.sim.run_with_sweeps(int(seconds))
        self.sim.run(seconds % 5)

    def run_without_workers(self, seconds: float) -> None:
        self.sim.clock.at += timedelta(seconds=seconds)

    def run_briefly(self) -> None:
        self.sim.run(SOON_S)
        if int(self.sim.now.timestamp()) % 5 == 0:
            self.sim.sweep()

    def attempts(self) -> Iterable[int]:
        return range(600)

    def lose_node(self, host: str) -> None:
        self._follow(host, hears=False)

    def recover_node(self, host: str) -> None:
        self._follow(host, hears=True)

    def _follow(self, host: str, *, hears: bool) -> None:
        site = next(site for site in self.sites if host in site.hosts)
        node_loss.update_node_state(site.cluster, host, hears=hears, now=self.sim.now)

    def set_gpu_count(self, site: Site, host: str, gpus: int) -> None:
        self.fewer[host] = gpus
        self.take_inventory(site)

    def evict_pod(self, lease: Lease) -> None:
        SimulatedPod.objects.filter(name=_name(lease)).update(ready_at=self.sim.now + timedelta(seconds=3))

    def edit_objects(self, lease: Lease) -> None:
        self.evict_pod(lease)

    def end_pod(self, lease: Lease, reason: str) -> None:
        Disturbed.fates[_name(lease)] = Observation(
            ObservedState.LOST, (match_rule(POD_RULES, reason, "") or UNKNOWN_DISRUPTION).text, last_seen=self.sim.now
        )

    def delete_all_of(self, lease: Lease) -> None:
        SimulatedPod.objects.filter(name=_name(lease)).update(gone_at=self.sim.now)

    def block_deletion(self, lease: Lease) -> Callable[[], None]:
        pods = SimulatedPod.objects.filter(name=_name(lease))
        pods.update(gone_at=self.sim.now + timedelta(days=365))
        return lambda: pods.update(gone_at=self.sim.now) and None

    def unblock_deletions(self) -> None:
        Disturbed.fates.clear()

    def delete_namespace(self, owner: TenantContext) -> None:
        SimulatedPod.objects.update(gone_at=self.sim.now)

    def create_foreign_object(self, lease: Lease) -> None:
        name = spec_name(lease.pk, reload_lease(lease).generation + 1)
        text = f"the cluster rejected it: ConfigMap {name} exists and is not managed by this broker"
        Disturbed.fates[name] = Observation(ObservedState.REFUSED, text)

    def inject_fault(self, what: str, *, times: int = 1) -> Callable[[], None]:
        verbs, answer = ANSWERS[what]
        made = Trouble(verbs, answer, times, (self.sites[0].cluster.pk,))
        Disturbed.troubles.append(made)
        return lambda: setattr(made, "times", 0)

    def storage_identity(self, volume: Volume) -> str:
        return volume.pk  # a simulated cluster keeps nothing beside its row

    def count_leases(self) -> int:
        return SimulatedPod.objects.count()

    def check_limits(self, lease: Lease, **limits: str) -> None:
        """Do nothing: a simulated cluster has no pods with limits."""


def _name(lease: Lease) -> str:
    return spec_name(lease.pk, reload_lease(lease).generation)
