"""Rare and thorough faults of the long chaos run."""

import time
from contextlib import suppress
from datetime import timedelta

from broker.domain.repartition.repartition_steps import UNRELIABLE_INVENTORY_STEPS, RepartitionStep
from broker.models import (
    Allocation,
    Cluster,
    ClusterWatch,
    Gpu,
    NodeState,
    Orphan,
    Repartition,
    RepartitionLogEntry,
    Transition,
)
from broker.models.repartitions import stored_layout
from broker.provisioners.kubernetes import names
from broker.services.clusters import orphan_removal
from broker.services.clusters.health import cluster_freeze
from broker.services.repartition import layout_rows, repartition_decisions, repartition_records
from tenants.services.errors import ProblemError
from tenants.services.rls import staff_scope, system_scope
from tests.chaos.kubernetes_world import MIXED, NEIGHBOURS, ONLY_ONES, PATIENCE_S, URGENT, World
from tests.controlplane import api
from tests.controlplane.manifests import pod
from tests.controlplane.mig_manager import MANNERS
from tests.controlplane.plane import KUBELETS, MANAGER, SCHEDULER
from tests.simulation import OPERATOR

IMAGE = "registry.example/acts:hang-0s"
HOURS, ASKED = 3, 4  # so long nobody answers, and how often somebody looks meanwhile
OLD_S = 20.0  # so old a backup has to be: then many of the cluster's versions came after it
NOTICED_WITHIN_S = 60.0
WHY = "the long run's operator"


def hours_pass_in_silence(world: World) -> None:
    """The cluster is silent for hours; ends are dated to the last sign."""
    ran = {lease.pk for lease in world.leases("active")}
    world.falls_silent()
    world.proxy.is_cut, world.patience_s = True, 0.05
    time.sleep(0.2)  # whatever is on its way arrives
    began = world.jumps.now
    for _ in range(ASKED):
        world.later(timedelta(hours=HOURS) / ASKED)
    for lease in world.leases():
        if lease.pk not in ran:
            continue
        if lease.state == "active" and "unreachable" not in lease.conditions:
            world.wonder(f"{lease.pk} was not called unreachable")
        if lease.state != "active" and (lease.ended_at is None or lease.ended_at > began):
            world.wonder(f"{lease.pk} was charged until {lease.ended_at}, silent since {began}")
        if lease.state == "released":
            world.wonder(f"{lease.pk} gave its place back and nobody knew that it was empty")
    world.proxy.is_cut, world.patience_s = False, PATIENCE_S
    world.speaks()


def seconds_pass(world: World) -> None:
    """Let seconds pass, so that delayed retries are due."""
    world.later(timedelta(seconds=10), thoroughly=False)


def minutes_pass(world: World) -> None:
    """Let minutes pass, so that a silent layout change is considered stuck."""
    world.later(timedelta(minutes=world.chance.choice((1, 5, 11))))


def is_backed_up(world: World) -> None:
    world.backup = world.plane.back_up(), time.monotonic()


def is_restored(world: World) -> None:
    """An old cluster state answers until an operator accepts it."""
    if world.backup is None or time.monotonic() - world.backup[1] < OLD_S or _frozen(world):
        return
    reached = _reached(world)
    ran = {lease.pk for lease in world.leases("active")}
    world.falls_silent()
    world.plane.restore(world.backup[0])
    world.backup = None
    world.set_back_at, world.claims = time.monotonic(), {}  # what was made since is lost with the cluster
    world.strange = {path: uid for path, uid in world.strange.items() if world.plane.api.find(path)}
    for part in (MANAGER, SCHEDULER, KUBELETS):  # they follow from a version that is yet to come
        world.plane.restart(part)
    version = int(world.plane.api.get("/api/v1/nodes", limit=1)["metadata"]["resourceVersion"])
    if version >= reached:
        world.wonder(f"the backup was too young: {version} after {reached}")
    end = time.monotonic() + NOTICED_WITHIN_S
    while not _frozen(world) and time.monotonic() < end:
        world.turn()
        time.sleep(0.05)
    if not _frozen(world):
        world.wonder(f"nobody noticed that version {version} is older than {reached}")
    for lease in world.leases():
        if lease.pk in ran and lease.end_reason == "device_lost":
            with system_scope():
                why = Transition.objects.filter(lease=lease.pk, after="releasing").latest("seq").cause
            world.wonder(f"{lease.pk} was taken for lost because an old state does not know it: {why}")
    operator_looks(world)
    world.speaks()


def node_is_cut_anew(world: World) -> None:
    """Repartition a node with any mig-manager; no lease is evicted."""
    closed = Repartition.objects.exclude(step__in=[RepartitionStep.DONE, RepartitionStep.CANCELLED]).values("node")
    ready = world.cluster.nodes.filter(state=NodeState.READY).exclude(pk__in=closed).order_by("name")
    if len(ready) < 2:  # where no node is left at work, nothing lives that could be harmed
        return
    node = world.chance.choice(ready)
    known = {gpu.index: cut for gpu in Gpu.objects.filter(node=node) if (cut := layout_rows.current_layout(gpu))}
    wanted = ONLY_ONES if known == MIXED else MIXED
    manners = world.chance.choice(("obeys", "wedges-once", "wedges-once", "fails"))
    _be(world, node.name, manners)
    now = world.sim.now
    change = Repartition.objects.create(
        node=node, wanted=stored_layout(wanted), before=stored_layout(known), planned_at=now, step_at=now
    )
    try:
        repartition_decisions.approve_repartition(change, actor=OPERATOR, now=now)
    except ProblemError as refused:
        repartition_records.set_repartition_step(change, RepartitionStep.CANCELLED, why=str(refused)[:200], now=now)


def operator_looks(world: World) -> None:
    """Make the pending decisions of an operator."""
    cluster, now = Cluster.objects.get(pk=world.cluster.pk), world.sim.now
    if cluster.frozen:
        cluster_freeze.unfreeze_cluster(cluster, why=WHY, actor=OPERATOR, now=now)
        world.forget()
    for change in Repartition.objects.filter(step=RepartitionStep.QUARANTINED):
        _be(world, change.node.name, "obeys")
        with suppress(ProblemError):  # it was decided before
            repartition_decisions.roll_back_repartition(change, why=WHY, actor=OPERATOR, now=now)
    if waiting := list(Orphan.objects.exclude(held_at=None).values_list("name", flat=True)):
        orphan_removal.approve_removal(cluster.pk, waiting, why=WHY, actor=OPERATOR, now=now)


def neighbour_needs_the_place(world: World) -> None:
    """A more important pod preempts ours."""
    held = {lease.pk for lease in world.leases("active")}
    with system_scope():
        places = Allocation.objects.filter(released_at=None, lease__in=held).select_related("gpu__node")
        if not (found := list(places.order_by("id"))):
            return
    place = world.chance.choice(found)
    asks = "gpu" if place.profile == "whole-gpu" else f"mig-{place.profile}"
    name, node = f"urgent-{names.id_suffix(place.pk)}", place.gpu.node.name
    count = world.plane.api.get(f"/api/v1/nodes/{node}")["status"]["allocatable"].get(f"nvidia.com/{asks}", "0")
    if int(count):
        body = pod(name, NEIGHBOURS, node=node, limits={f"nvidia.com/{asks}": count})
        body["spec"]["priorityClassName"] = URGENT
        with suppress(api.Refused):  # it is there already
            world.plane.api.create(body)


def neighbours_leave(world: World) -> None:
    for each in world.plane.api.items(f"/api/v1/namespaces/{NEIGHBOURS}/pods"):
        with suppress(api.Refused):
            world.plane.api.delete(f"/api/v1/namespaces/{NEIGHBOURS}/pods/{each['metadata']['name']}")


def foreign_object_takes_our_name(world: World) -> None:
    """A foreign object has a lease's name; the lease is refused."""
    queued = [lease for lease in world.leases("queued") if lease.generation == 1]
    spaces = world.plane.api.items("/api/v1/namespaces", labelSelector="gpubroker.dev/project")
    space_of = {each["metadata"]["labels"]["gpubroker.dev/project"]: each["metadata"]["name"] for each in spaces}
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in spaces}
    for lease in queued:
        if space := space_of.get(lease.project_id):
            meta = {"name": names.anchor_name(lease.pk, lease.generation + 1), "namespace": space}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"whose": "not yours"}}
            with suppress(api.Refused):  # its namespace is just being deleted
                made = world.plane.api.create(body)
                world.strange[world.plane.api.path(body)] = f"{uids[space]} {made['metadata']['uid']}"
            return


def ask_where_a_foreign_object_is(world: World) -> None:
    world.ask(IMAGE, "1g.10gb", max_duration_s=3600)
    foreign_object_takes_our_name(world)


def check_foreign_objects(world: World) -> None:
    """Check that foreign objects are unchanged, unless their namespace was deleted."""
    for path, uids in list(world.strange.items()):
        space = world.plane.api.find(path.partition("/configmaps/")[0])
        if space is None or "deletionTimestamp" in space["metadata"] or space["metadata"]["uid"] not in uids:
            del world.strange[path]
            continue
        seen = world.plane.api.find(path)
        if seen is None or seen["metadata"]["uid"] not in uids or seen.get("data") != {"whose": "not yours"}:
            world.wonder(f"a foreign object was touched: {path}")
            del world.strange[path]


def cut_while_held(world: World) -> None:
    """Check that no node repartitions while slots are allocated."""
    at_work = Repartition.objects.filter(step__in=[step.value for step in UNRELIABLE_INVENTORY_STEPS]).values("node")
    with staff_scope():
        held = Allocation.objects.filter(gpu__node__in=at_work, released_at=None).count()
    if held:
        world.wonder(f"{held} places are held on a node that is being cut")


def wedges_healed() -> int:
    """Count layout changes completed after their node had hung."""
    nudged = RepartitionLogEntry.objects.filter(step=RepartitionStep.RETRYING.value).values("change")
    return Repartition.objects.filter(pk__in=nudged, step=RepartitionStep.DONE).count()


def _be(world: World, node: str, manners: str) -> None:
    body = {"metadata": {"annotations": {MANNERS: manners}}}
    with suppress(api.Refused):
        world.plane.api.patch(f"/api/v1/nodes/{node}", body)


def _frozen(world: World) -> bool:
    return cluster_freeze.is_frozen(world.cluster.pk)


def _reached(world: World) -> int:
    return max(ClusterWatch.objects.filter(cluster=world.cluster).values_list("version", flat=True), default=0)
