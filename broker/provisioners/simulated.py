"""Simulated cluster with realistic latencies, refusals, lost nodes and slow deletes.

Latencies are drawn from the spec's name, so that the same spec always takes as long; a slice left over
from an earlier lease need not be created again. Faults come on request: an image named `refuse/…` is
refused, `slow/…` takes minutes to pull and to go, `brief/…` is done after half a minute, `fails/…` and
`hungry/…` end badly after some seconds; a node or a GPU set to lost takes its pods down.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.backends.postgresql.psycopg_any import Jsonb

from broker.domain.geometry.cpu_blocks import device_name
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.warm_slices import PartitioningEffort
from broker.domain.workloads.templates import BATCH, TEMPLATES
from broker.models import ImagePrepull, InventoryChange, Node, NodeState, SimulatedPod, SimulatedVolume
from broker.provisioners.base import (
    CommandFailed,
    HeldPod,
    ImagePresence,
    KeptImage,
    LogRead,
    Observation,
    ObservedState,
    ProvisionSpec,
    VolumeRef,
)
from broker.provisioners.simulated_programs import batch_end, program_lines
from ports.postgres.sql_statements import fetch_rows, load_sql
from ports.rng import Rng
from tenants.services.actors import SYSTEM

PULL_S, START_S, DELETE_S, SPREAD = 2.6, 1.2, 0.8, 0.35
SHORTEST_S = 0.001  # times are stored in microseconds: anything shorter than this is zero
SLOW_S, SLOW_DELETE_S = 240.0, 60.0
BRIEF_RUN, FAILS_AFTER = timedelta(seconds=30), timedelta(seconds=10)
FAILURES = {"fails/": "exit code 1", "hungry/": "it exceeded its memory limit (OOMKilled)"}
FAILED_CODES = {"exit code 1": 1, "it exceeded its memory limit (OOMKilled)": 137}
COMMAND_DONE = "its command finished"


class SimulatedProvisioner:
    """Simulates a cluster whose pods are rows, so that several workers share it."""

    def ensure(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        pull_s, start_s = self._latencies_in_cluster(spec)
        cut_s = _partition_seconds(spec)
        made = {
            "name": spec.name,
            "nodes": Jsonb(sorted({s.node for s in spec.slices})),
            "created_at": now,
            "ready_at": now + timedelta(seconds=cut_s + pull_s + start_s),
            "refused": self._refusal(spec),
            "slow": spec.image.startswith("slow/"),
        }
        (pod,) = SimulatedPod.objects.raw(load_sql("broker/clusters/insert_simulated_pod"), made)
        if spec.volume:
            self._keep(spec, spec.volume, now)
        return self._observe_pod(spec, pod, now)

    def observe(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        pod = _find_pod(spec)
        return self._observe_pod(spec, pod, now) if pod else Observation(ObservedState.GONE)

    def let_go(self, spec: ProvisionSpec, remains: tuple[HeldPod, ...]) -> None:
        """Do nothing.

        A simulated pod is one row, which is restarted in place and deleted only when it is removed.
        """

    def run_command(self, spec: ProvisionSpec, command: str, *, now: datetime) -> None:
        """Record the command; a simulated pod runs nothing."""
        running = SimulatedPod.objects.filter(name=spec.name, gone_at=None, ready_at__lte=now)
        if not running.update(last_command=command, last_command_at=now):
            raise CommandFailed("its pod does not run")

    def remove(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        return self._remove(spec.name, now)

    def read_log(self, spec: ProvisionSpec, cursor: dict[str, Any], *, newest_only: bool, now: datetime) -> LogRead:
        pod = _find_pod(spec)
        if pod is None or pod.ready_at is None or pod.ready_at > now or pod.refused:
            return LogRead(cursor=cursor)
        until = min(now, pod.gone_at or now)
        lines = tuple(program_lines(spec, started=pod.ready_at, until=until))
        return LogRead(lines[cursor.get("lines", 0) :], {"lines": len(lines)})

    def names(self) -> list[str]:
        return list(SimulatedPod.objects.values_list("name", flat=True))

    def remove_named(self, name: str, *, now: datetime) -> None:
        self._remove(name, now)

    def remove_volume(self, volume: VolumeRef, *, now: datetime) -> Observation:
        stored = SimulatedVolume.objects.filter(name=volume.id).first()
        if stored is None:
            return Observation(ObservedState.GONE)
        if stored.gone_at is None:
            delete_s = Rng(f"delete {volume.id}").lognormal(DELETE_S, SPREAD) / settings.SIMULATED_SPEED
            stored.gone_at = now + timedelta(seconds=delete_s)
            stored.save(update_fields=["gone_at"])
        if stored.gone_at > now:
            left = (stored.gone_at - now).total_seconds()
            return Observation(ObservedState.PENDING, "being deleted", again_in_s=left)
        stored.delete()
        return Observation(ObservedState.GONE)

    def keep_image(self, kept: KeptImage, *, now: datetime) -> ImagePresence:
        nodes = Node.objects.filter(cluster=kept.cluster).exclude(state=NodeState.LOST).count()
        if kept.image.startswith("refuse/"):
            return ImagePresence(nodes, 0, "the registry says that the image does not exist")
        pulled = kept.requested_at + timedelta(seconds=PULL_S / settings.SIMULATED_SPEED) <= now
        return ImagePresence(nodes, nodes if pulled else 0)

    def drop_image(self, kept: KeptImage, *, now: datetime) -> bool:
        return True

    def _keep(self, spec: ProvisionSpec, volume: VolumeRef, now: datetime) -> None:
        """Create the volume at its first use and record its latest user.

        So a later lease finds the data of an earlier one.
        """
        made = {"size_gib": volume.size_gib, "made_at": now}
        SimulatedVolume.objects.get_or_create(name=volume.id, defaults=made)
        SimulatedVolume.objects.filter(name=volume.id).update(last_used_by=spec.name)

    def _remove(self, name: str, now: datetime) -> Observation:
        usual_s = Rng(f"delete {name}").lognormal(DELETE_S, SPREAD)
        usual, slow = (timedelta(seconds=each / settings.SIMULATED_SPEED) for each in (usual_s, SLOW_DELETE_S))
        wanted = {"name": name, "now": now, "usual": usual, "slow": slow, "lost": NodeState.LOST}
        rows = fetch_rows(load_sql("broker/clusters/remove_simulated_pod"), wanted)
        if not rows:
            return Observation(ObservedState.GONE)
        ((gone_at, lost_node, lost_since),) = rows
        if gone_at > now:
            return Observation(ObservedState.PENDING, "shutting down", again_in_s=(gone_at - now).total_seconds())
        if lost_node:  # a lost node confirms nothing, and removes the pod when it is back
            return Observation(ObservedState.LOST, f"node {lost_node} is unreachable", last_seen=lost_since)
        SimulatedPod.objects.filter(name=name).delete()
        return Observation(ObservedState.GONE)

    def _observe_pod(self, spec: ProvisionSpec, pod: SimulatedPod, now: datetime) -> Observation:
        if pod.refused:
            return Observation(ObservedState.REFUSED, pod.refused)
        if fault := self._fault(spec):
            return fault
        if pod.gone_at is not None:
            return Observation(ObservedState.GONE, last_seen=pod.gone_at)
        if pod.ready_at and spec.image.startswith("brief/") and pod.ready_at + BRIEF_RUN <= now:
            return Observation(ObservedState.ENDED, COMMAND_DONE, last_seen=pod.ready_at + BRIEF_RUN, exit_code=0)
        if pod.ready_at and pod.ready_at + FAILS_AFTER <= now and (how := _failure_of(spec)):
            return _failed_observation(spec, how, at=pod.ready_at + FAILS_AFTER, now=now)
        if pod.ready_at and pod.ready_at <= now:
            return _observe_program(spec, now, started=pod.ready_at)
        return self._progress(spec, pod, now)

    def _fault(self, spec: ProvisionSpec) -> Observation | None:
        """Return the loss of a node or GPU, if there is one."""
        wanted = {"gpus": [each.gpu for each in spec.slices], "lost": NodeState.LOST}
        rows = fetch_rows(load_sql("broker/clusters/lost_gpu"), wanted)
        if not rows:
            return None
        node_id, state, node, node_since, model, index, reason, since = rows[0]
        if state == NodeState.LOST:
            losses = InventoryChange.objects.filter(node=node_id, gpu=None, after=NodeState.LOST)
            is_silent = losses.order_by("id").values_list("actor_label", flat=True).last() == SYSTEM.label
            text = f"node {node} is unreachable"
            return Observation(ObservedState.LOST, text, last_seen=node_since, node_unreachable=is_silent)
        why = f": {reason}" if reason else ""
        text = f"{device_name(model, index)} of {node} failed{why}"
        return Observation(ObservedState.LOST, text, last_seen=since)

    def _progress(self, spec: ProvisionSpec, pod: SimulatedPod, now: datetime) -> Observation:
        pull_s, start_s = self._latencies_in_cluster(spec)
        elapsed = (now - pod.created_at).total_seconds()
        left = max((pod.ready_at - now).total_seconds(), 0.05) if pod.ready_at else 1.0
        if elapsed < pull_s:
            percent = int(100 * elapsed / pull_s)
            return Observation(
                ObservedState.PENDING, "pulling image", percent, again_in_s=min(left, settings.SIMULATED_PROGRESS_S)
            )
        # The partitioning time is in `ready_at` since creation, so it is derived from that.
        if pod.ready_at and left > start_s and elapsed + left > pull_s + start_s + SHORTEST_S:
            return Observation(
                ObservedState.PENDING,
                f"partitioning GPU for {spec.profile}",
                again_in_s=min(max(left - start_s, 0.05), settings.SIMULATED_PROGRESS_S),
            )
        return Observation(ObservedState.PENDING, "starting", again_in_s=min(left, settings.SIMULATED_PROGRESS_S))

    def _latencies_in_cluster(self, spec: ProvisionSpec) -> tuple[float, float]:
        pull_s, start_s = self._latencies(spec)
        return 0.0 if _is_prepulled(spec) else pull_s, start_s

    def _latencies(self, spec: ProvisionSpec) -> tuple[float, float]:
        rng = Rng(spec.name)
        pull_s = SLOW_S if spec.image.startswith("slow/") else rng.lognormal(PULL_S, SPREAD)
        return pull_s / settings.SIMULATED_SPEED, rng.lognormal(START_S, SPREAD) / settings.SIMULATED_SPEED

    def _refusal(self, spec: ProvisionSpec) -> str:
        if spec.image.startswith("refuse/"):
            return f"the image {spec.image} cannot be pulled: the registry says it does not exist"
        return ""


def _find_pod(spec: ProvisionSpec) -> SimulatedPod | None:
    found = SimulatedPod.objects.raw("SELECT * FROM broker_simulatedpod WHERE name = %s", [spec.name])
    return next(iter(found), None)


def _observe_program(spec: ProvisionSpec, now: datetime, *, started: datetime) -> Observation:
    """Return the observation of a started pod: its program runs or has ended."""
    end = batch_end(spec, started=started)
    if end is None or end[0] > now:
        return Observation(ObservedState.READY, "readiness verified", ends_at=end[0] if end else None)
    at, code = end
    text = f"its command failed: exit code {code}" if code else COMMAND_DONE
    return Observation(ObservedState.ENDED, text, last_seen=at, exit_code=code)


def _partition_seconds(spec: ProvisionSpec) -> float:
    """Return the seconds the GPUs need to create a spec's slices, in parallel."""
    rng = Rng(f"partition {spec.name}")
    cut_s, destroy_s = (
        rng.lognormal(median, SPREAD) if median else 0.0
        for median in (settings.SIMULATED_PARTITION_S, settings.SIMULATED_DESTROY_S)
    )
    ways = {each.cutting for each in spec.slices}
    # A whole GPU and a share are not created as slices, but leftover slices must be destroyed for them too.
    cuts = spec.isolation == Isolation.HARDWARE and not ways <= {None, PartitioningEffort.REUSE}
    return (cuts * cut_s + (PartitioningEffort.REPLACE in ways) * destroy_s) / settings.SIMULATED_SPEED


def _is_prepulled(spec: ProvisionSpec) -> bool:
    """Return whether the nodes of its cluster had pulled its image before."""
    template = spec.template or TEMPLATES.get(spec.workload)
    image = spec.image or (template.image if template else "")
    if not image:
        return False
    kept = ImagePrepull.objects.filter(cluster=spec.cluster, image=image, removed_at=None)
    return kept.filter(ready_since__lte=spec.placed_at).exists()


def _failure_of(spec: ProvisionSpec) -> str:
    """Return how an image's program fails; empty if it does not."""
    return next((how for beginning, how in FAILURES.items() if spec.image.startswith(beginning)), "")


def _failed_observation(spec: ProvisionSpec, how: str, *, at: datetime, now: datetime) -> Observation:
    """Return the observation of a failed program.

    A batch is over with its command; everything else is restarted again and again.
    """
    if spec.workload == BATCH.name:
        return Observation(ObservedState.ENDED, f"its command failed: {how}", last_seen=at, exit_code=FAILED_CODES[how])
    text = f"the program exited 1 times: {how}; it is restarted"
    return Observation(ObservedState.PENDING, text, last_seen=now, running=True)
