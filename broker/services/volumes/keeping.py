"""Making and deleting volumes: made by a cluster at first use, deleted once no cluster has anything of it."""

from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from broker.domain.states import VolumeState
from broker.models import Cluster, Lease, Volume
from broker.provisioners.base import Kept, Seen, Unanswered
from broker.services import clusters, quotas
from broker.services.volumes import histories
from broker.services.volumes.refusals import NameTaken, VolumeInUse
from ports import doorbell
from tenants.domain.text import is_name
from tenants.models import Project, Quota, QuotaKind
from tenants.services import audit
from tenants.services.actors import SYSTEM, Actor
from tenants.services.quotas import hold_off_new, set_limit
from tenants.services.refusals import Invalid
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
MOST_GIB = 65_536
LOOK_AGAIN = timedelta(seconds=10)
BATCH = 500
GOING = (VolumeState.DELETING.value, VolumeState.DELETED.value)  # the latter where it was looked for again
Hint = tuple[str, str, str]


@transaction.atomic
def create(*, project: Project, name: str, size_gib: int, actor: Actor, now: datetime) -> Volume:
    """Set a volume up in the books and take its room from every quota; its cluster makes it for its first lease."""
    name = name.strip()
    if not is_name(name):
        raise Invalid(
            "name",
            "A name has 1 to 120 characters and no control or invisible characters.",
            fix="Choose a plain name.",
        )
    if not 1 <= size_gib <= MOST_GIB:
        raise Invalid(
            "size_gib", f"A volume has from 1 to {MOST_GIB:,} GiB.", fix="Choose a size between the two."
        )
    _first_ceiling(project, now=now)
    hold_off_new(project.tenant_id)
    quotas.take_room(project, size_gib, now=now)
    # Behind the lock on the quota at the root, so that of two with the same name one finds the other.
    if Volume.objects.there().filter(project=project, name=name).exists():
        raise NameTaken(f"There is a volume {name!r} in this project.", fix="Choose another name.")
    volume = Volume.objects.create(
        tenant_id=project.tenant_id,
        project=project,
        name=name,
        size_gib=size_gib,
        created_at=now,
        requested_by=actor.id,
        requested_by_label=actor.label,
    )
    _record("volume.create", volume, actor=actor, now=now, size_gib=size_gib)
    return volume


def _first_ceiling(project: Project, *, now: datetime) -> None:
    """Let no tenant's room be without bounds: the first volume finds a ceiling at the root, or brings it along."""
    root = project.path[0]
    if not Quota.objects.filter(project_id=root, kind=QuotaKind.STORAGE).exists():
        first = settings.NEW_TENANT_STORAGE_GIB
        at_root = Project.objects.get(pk=root)
        set_limit(project=at_root, kind=QuotaKind.STORAGE, limit=first, actor=SYSTEM, now=now)


@transaction.atomic
def delete(volume: Volume, *, actor: Actor, now: datetime) -> Volume:
    """Begin to delete a volume that no lease has; one that is going already stays as it is."""
    hold_off_new(volume.tenant_id)
    volume = Volume.objects.select_for_update(of=("self",)).select_related("project").get(pk=volume.pk)
    if volume.state != VolumeState.READY:
        return volume
    if holder := Lease.objects.live().filter(volume=volume).first():
        raise VolumeInUse(
            f"{holder.name} has {volume.name}, and is {holder.state}.", fix="Release that lease first."
        )
    volume.state, volume.due_at, volume.version = VolumeState.DELETING.value, now, volume.version + 1
    volume.save(update_fields=["state", "due_at", "version"])
    histories.end(volume, at=now)
    _record("volume.delete", volume, actor=actor, now=now, size_gib=volume.size_gib)
    doorbell.ring("broker.volume", volume.pk, tenant_id=volume.tenant_id, now=now)
    return volume


def step(volume_id: str, tenant_id: str, *, now: datetime) -> None:
    """Have every cluster take away what it keeps of a volume; it is deleted when the last has nothing of it."""
    with as_tenant(tenant_id):
        going = Volume.objects.filter(pk=volume_id, state__in=GOING).exclude(due_at=None)
        volume = going.select_related("project").first()
        if volume is None:
            return
        Volume.objects.filter(pk=volume.pk).update(due_at=now + LOOK_AGAIN)
        where = list(Cluster.objects.filter(pk__in=[volume.cluster_id, *volume.left_in]).order_by("id"))
    # Of all, not of any: each is asked, so that one which is silent does not keep the others waiting.
    if all([_is_gone(volume, cluster, now) for cluster in where]):
        with as_tenant(tenant_id):
            _finish(volume, now)


def _is_gone(volume: Volume, cluster: Cluster, now: datetime) -> bool:
    kept = Kept(volume.pk, volume.size_gib, tenant_id=volume.tenant_id, project_id=volume.project_id)
    try:
        seen = clusters.provisioner_at(cluster).remove_volume(kept, now=now)
    except Unanswered as silence:
        log.warning("a volume is not gone", volume=volume.pk, cluster=cluster.name, why=str(silence))
        return False
    if seen.seen is not Seen.GONE:
        again_s = seen.again_in_s
        doorbell.ring("broker.volume", volume.pk, tenant_id=volume.tenant_id, now=now, after_s=again_s)
    return seen.seen is Seen.GONE


def _finish(volume: Volume, now: datetime) -> None:
    hold_off_new(volume.tenant_id)
    row = Volume.objects.filter(pk=volume.pk)
    row.filter(state=VolumeState.DELETED.value).update(due_at=None)
    gone = {
        "state": VolumeState.DELETED.value,
        "deleted_at": now,
        "due_at": None,
        "version": F("version") + 1,
    }
    if row.filter(state=VolumeState.DELETING.value).update(
        **gone
    ):  # whoever comes second gives nothing back twice
        quotas.give_room_back(volume.project, volume.size_gib)
        _record("volume.gone", volume, actor=SYSTEM, now=now, size_gib=volume.size_gib)


def delete_again(cluster: Cluster, *, now: datetime) -> None:
    """Look once more after all that was deleted from a cluster: an old state of it may have brought it back."""
    was_there = Q(cluster=cluster) | Q(left_in__contains=cluster.pk)
    deleted = Volume.objects.filter(was_there, state=VolumeState.DELETED.value)
    with as_sweep():
        tenants = sorted(set(deleted.values_list("tenant_id", flat=True)))
    for tenant_id in tenants:
        with as_tenant(tenant_id):
            deleted.all().update(due_at=now)


def due(*, now: datetime) -> list[Hint]:
    """Return a look at every volume that is being deleted, or deleted again, and whose moment has come."""
    with as_sweep():
        rows = Volume.objects.filter(due_at__lte=now).order_by("due_at", "id").values_list("id", "tenant_id")
        return [("broker.volume", volume_id, tenant_id) for volume_id, tenant_id in rows[:BATCH]]


def _record(action: str, volume: Volume, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(
        action,
        actor=actor,
        now=now,
        tenant_id=volume.tenant_id,
        subject_id=volume.pk,
        subject_label=volume.name,
        project=volume.project_id,
        **detail,
    )
