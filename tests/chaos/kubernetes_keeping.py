"""Users of the long chaos run with volumes, stops and starts.

Nothing of what somebody kept may be lost, unless an administrator deleted it by hand with all its namespace, or the
whole cluster was set back. Nothing of it may be written by two at once, and what is stopped holds and costs nothing.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise

from django.db.models import Count

from broker.domain.lifecycle.states import LeaseState, VolumeState
from broker.models import Lease, Transition, Volume
from broker.services.reports import invariant_checks
from broker.services.volumes import volume_lifecycle, volume_mounts
from tenants.models import QuotaKind
from tenants.services.errors import ProblemError
from tenants.services.rls import staff_scope, system_scope, tenant_scope
from tests.chaos.kubernetes_world import PATIENCE_S, World
from tests.controlplane.api import Object
from tests.simulation import TenantContext

IMAGE = "registry.example/acts:"
SCRIPTS = ("hang-0s", "hang-0s", "hang-1s", "pull-1s", "oom-3s")
CLAIMS, SPACES = "/api/v1/persistentvolumeclaims", "/api/v1/namespaces"
SIZE_GIB = 10
MOST_STOPPED, MOST_VOLUMES = 5, 6  # beyond that somebody lets one go
LONGEST = 9  # leases that hold something
TAKEN_DOWN_S = 60.0  # so long what an old state of the cluster brought back may run on
AT_WORK = ("queued", "provisioning", "active", "stopping", "releasing")


def asks_for_a_home(world: World) -> None:
    """Request a lease with an old or new volume."""
    if len(world.leases(*AT_WORK)) >= LONGEST:
        return
    owner = world.some_home()
    with tenant_scope(owner.tenant.pk):
        free = list(volume_mounts.available_volumes(owner.project).order_by("id"))
        count = Volume.objects.existing().count()
    if free and (count >= MOST_VOLUMES or world.chance.random() < 0.7):
        volume = world.chance.choice(free)
    elif count < MOST_VOLUMES:
        volume = world.people.create_volume(owner, f"home-{world.numbers}", size_gib=SIZE_GIB)
        world.numbers += 1
    else:
        return
    script = IMAGE + world.chance.choice(SCRIPTS)
    lasts = world.chance.choice((120, 3600, 3600, 6 * 3600))
    profile = world.chance.choice(("1g.10gb", "1g.10gb", "1g.10gb", "whole-gpu"))
    world.ask(script, profile, owner=owner, max_duration_s=lasts, volume=volume.pk)


def stops(world: World) -> None:
    if len(world.leases("stopped")) >= MOST_STOPPED:
        releases_a_stopped(world)
        return
    if active := [lease for lease in world.leases("active") if lease.volume_id]:
        lease = world.chance.choice(active)
        with suppress(ProblemError):  # its time is up this very moment
            world.people.stop_lease(lease, home_of(world, lease))


def starts(world: World) -> None:
    if len(world.leases(*AT_WORK)) < LONGEST and (stopped := world.leases("stopped")):
        _start(world, world.chance.choice(stopped))


def releases_a_stopped(world: World) -> None:
    if stopped := world.leases("stopped"):
        world.people.release_lease(world.chance.choice(stopped))


def deletes_a_volume(world: World) -> None:
    """Delete any volume; the request is refused while a lease uses it."""
    with system_scope():
        there = list(Volume.objects.filter(state=VolumeState.READY.value).order_by("id"))
        if not there:
            return
        volume = world.chance.choice(there)
        held = Lease.objects.live().filter(volume=volume).exists()
    was_refused = not _delete(world, volume)
    if was_refused != held:
        world.wonder(f"{volume.pk} was {'not ' * (not was_refused)}kept, and a lease has it: {held}")


def is_lost_between_stop_and_start(world: World) -> None:
    """Silence the cluster while leases stop and start; nothing is charged."""
    stops(world)
    for _ in range(6):
        world.turn()
        time.sleep(0.05)
    before = {lease.pk: lease.active_seconds for lease in world.leases("stopping", "stopped")}
    world.falls_silent()
    world.proxy.is_cut, world.patience_s = True, 0.05
    time.sleep(0.2)  # whatever is on its way arrives
    began = world.jumps.now
    for hour in range(3):
        if hour == 1:
            starts(world)
        world.later(timedelta(hours=1))
    for lease in world.leases():
        if lease.pk in before and lease.active_seconds != before[lease.pk]:
            world.wonder(
                f"{lease.pk} was charged for {lease.active_seconds} s, for {before[lease.pk]} s when it stopped"
            )
        if lease.pk in before and lease.active_at and lease.active_at > began:
            world.wonder(f"{lease.pk} became active at {lease.active_at}, its cluster silent since {began}")
    world.proxy.is_cut, world.patience_s = False, PATIENCE_S
    world.speaks()


def _start(world: World, lease: Lease) -> None:
    try:
        world.people.start_lease(lease, home_of(world, lease))
    except ProblemError as refused:
        if refused.code == "duration-used-up":
            world.people.release_lease(lease)
        else:
            world.refused += 1


def _delete(world: World, volume: Volume) -> bool:
    owner = next(each for each in world.homes if each.tenant.pk == volume.tenant_id)
    try:
        with tenant_scope(volume.tenant_id):
            volume_lifecycle.delete_volume(volume, actor=owner.actor, now=world.sim.now)
    except ProblemError:
        return False
    return True


def home_of(world: World, lease: Lease) -> TenantContext:
    return next(each for each in world.homes if each.tenant.pk == lease.tenant_id)


def look(world: World, running: Collection[tuple[str, int]]) -> None:
    """Check volumes and stopped leases against the running pods."""
    _are_kept(world)
    with system_scope():
        live = Lease.objects.live().exclude(volume=None).values("volume").annotate(leases=Count("id"))
        for each in live.filter(leases__gt=1):
            world.wonder(f"{each['leases']} leases have volume {each['volume']}")
    for lease in world.leases("stopped"):
        if lease.quota_uses.keys() - {"gpu_seconds"} or lease.ends_at or lease.active_at:
            world.wonder(f"{lease.pk} is stopped and holds {lease.quota_uses}")
        if (lease.pk, lease.generation) in running and time.monotonic() - world.set_back_at > TAKEN_DOWN_S:
            world.wonder(f"{lease.pk} is stopped, and a pod of it runs")
    with staff_scope():
        for proof in invariant_checks.check_invariants(now=world.sim.now):
            if not proof.holds:
                world.wonder(f"{proof.name}: {proof.examples}")


def _are_kept(world: World) -> None:
    """Compare the claims of volumes with the previous ones, and store them."""
    claims = {each["metadata"]["labels"]["gpubroker.dev/volume"]: each["metadata"] for each in claims_of(world)}
    spaces = {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in world.plane.api.items(SPACES, labelSelector="gpubroker.dev/project")
        if "deletionTimestamp" not in each["metadata"]
    }
    with system_scope():
        ready = set(Volume.objects.filter(state=VolumeState.READY.value).values_list("id", flat=True))
    for volume, (space, space_uid, uid) in world.claims.items():
        if volume in ready and spaces.get(space) == space_uid:
            there = claims.get(volume)
            if there is None or there["uid"] != uid or "deletionTimestamp" in there:
                world.wonder(f"{volume} is lost: its claim is {there and there['uid']}, was {uid}")
    world.claims = {
        volume: (meta["namespace"], spaces[meta["namespace"]], meta["uid"])
        for volume, meta in claims.items()
        if volume in ready and meta["namespace"] in spaces and "deletionTimestamp" not in meta
    }


def claims_of(world: World) -> list[Object]:
    return world.plane.api.items(CLAIMS, labelSelector="gpubroker.dev/volume")


def delete_all(world: World) -> bool:
    """Delete every volume; return whether all are deleted."""
    with system_scope():
        left = list(Volume.objects.existing().order_by("id"))
    for volume in left:
        _delete(world, volume)
    return not left


def unfinished() -> list[str]:
    with system_scope():
        left = Volume.objects.existing().select_related("cluster").order_by("id")
        return [f"{each.pk} {each.state} in {each.cluster} and {each.remaining_clusters}" for each in left]


def wrong_times() -> Iterator[str]:
    """Name leases and quotas whose seconds do not add up."""
    with system_scope():
        leases = list(Lease.objects.select_related("offering").order_by("id"))
        steps = list(Transition.objects.order_by("lease_id", "seq"))
    active, spent = Counter[str](), Counter[str]()
    for one, other in pairwise(steps):
        if one.lease_id == other.lease_id and one.after == LeaseState.ACTIVE:
            length = int((other.at - one.at).total_seconds())
            active[one.lease_id] += length
            spent[one.lease_id] += length if other.after == LeaseState.STOPPING else 0
    for lease in leases:
        if active[lease.pk] > lease.max_duration_s:
            yield f"{lease.pk} was active for {active[lease.pk]} s of {lease.max_duration_s} s"
        if spent[lease.pk] != lease.active_seconds:
            yield f"{lease.pk} spent {lease.active_seconds} s before it stopped last, by the ledger {spent[lease.pk]} s"


def wrong_hours(world: World) -> Iterator[str]:
    """Name tenants whose GPU-hour quota contradicts the transitions."""
    with system_scope():
        leases = {lease.pk: lease for lease in Lease.objects.select_related("offering")}
        steps = list(Transition.objects.order_by("lease_id", "seq"))
    used = Counter[str]()
    for one, other in pairwise(steps):
        if one.lease_id == other.lease_id and one.after == LeaseState.ACTIVE:
            lease = leases[one.lease_id]
            units = lease.quantity * lease.offering.milli_units
            used[lease.tenant_id] += units * int((other.at - one.at).total_seconds())
    for owner in world.homes:
        counted = owner.quota_used(QuotaKind.GPU_SECONDS)
        if counted != used[owner.tenant.pk]:
            yield f"{owner.tenant.name} used {counted} unit seconds, by the ledger {used[owner.tenant.pk]}"


def counts() -> dict[str, int]:
    """Count volumes, stops and starts."""
    with system_scope():
        steps = Transition.objects
        began = steps.filter(before=LeaseState.PROVISIONING, after=LeaseState.ACTIVE)
        again = steps.filter(before=LeaseState.STOPPED, after=LeaseState.QUEUED)
        over = steps.filter(before=LeaseState.STOPPED, after=LeaseState.RELEASING)
        return {
            "stopped": steps.filter(after=LeaseState.STOPPED).count(),
            "started": again.count(),
            "active_again": began.count() - began.values("lease_id").distinct().count(),
            "released_while_stopped": over.count(),
            "leases_with_a_volume": Lease.objects.exclude(volume=None).count(),
            "volumes": Volume.objects.count(),
            "volumes_used": Volume.objects.exclude(used_at=None).count(),
        }
