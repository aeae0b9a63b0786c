"""Creation and deletion of volumes.

A cluster creates a volume at its first use; the volume is deleted once no cluster has anything of it.
"""

from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from broker.domain.lifecycle.states import VolumeState
from broker.models import Cluster, Lease, Volume
from broker.provisioners.base import ClusterUnreachable, ObservedState, VolumeRef
from broker.services import quotas
from broker.services.inventory import cluster_provisioners
from broker.services.quotas import block_new_quotas
from broker.services.volumes import volume_metering
from broker.services.volumes.volume_errors import VolumeInUse, VolumeNameTaken
from ports import outbox
from tenants.domain.single_line_text import is_name
from tenants.models import Project, Quota, QuotaKind
from tenants.services import audit, projects
from tenants.services.actors import SYSTEM, Actor
from tenants.services.errors import InvalidValue
from tenants.services.quotas import set_limit
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
MAX_SIZE_GIB = 65_536
RECHECK_AFTER = timedelta(seconds=10)
BATCH = 500
BEING_DELETED = (VolumeState.DELETING.value, VolumeState.DELETED.value)  # DELETED: an old volume that is checked again


@transaction.atomic
def create_volume(*, project: Project, name: str, size_gib: int, actor: Actor, now: datetime) -> Volume:
    """Create a volume row and take its size from every quota.

    Its cluster creates the storage for its first lease.
    """
    name = name.strip()
    if not is_name(name):
        raise InvalidValue(
            "name",
            "A name must have 1 to 120 characters without control or invisible characters.",
            fix="Enter another name.",
        )
    if not 1 <= size_gib <= MAX_SIZE_GIB:
        raise InvalidValue(
            "size_gib", f"A volume must have 1 to {MAX_SIZE_GIB:,} GiB.", fix="Choose a size in this range."
        )
    projects.require_open(project)
    _ensure_storage_quota(project, now=now)
    block_new_quotas(project.tenant_id)
    quotas.take_storage(project, size_gib, now=now)
    # After the lock on the root's quota, so that concurrent requests for one name see each other.
    if Volume.objects.existing().filter(project=project, name=name).exists():
        raise VolumeNameTaken(f"This project already has a volume {name!r}.", fix="Choose another name.")
    volume = Volume.objects.create(
        tenant_id=project.tenant_id,
        project=project,
        name=name,
        size_gib=size_gib,
        created_at=now,
        requested_by=actor.id,
        requested_by_label=actor.label,
    )
    _record_audit("volume.create", volume, actor=actor, now=now, size_gib=size_gib)
    return volume


def _ensure_storage_quota(project: Project, *, now: datetime) -> None:
    """Create a default storage quota at the root if the tenant has none."""
    root = project.path[0]
    if not Quota.objects.filter(project_id=root, kind=QuotaKind.STORAGE).exists():
        first = settings.DEFAULT_TENANT_STORAGE_GIB
        at_root = Project.objects.get(pk=root)
        set_limit(project=at_root, kind=QuotaKind.STORAGE, limit=first, actor=SYSTEM, now=now)


@transaction.atomic
def delete_volume(volume: Volume, *, actor: Actor, now: datetime) -> Volume:
    """Begin to delete a volume that no lease uses; repeating it does nothing."""
    block_new_quotas(volume.tenant_id)
    volume = Volume.objects.select_for_update(of=("self",)).select_related("project").get(pk=volume.pk)
    if volume.state != VolumeState.READY:
        return volume
    if holder := Lease.objects.live().filter(volume=volume).first():
        raise VolumeInUse(
            f"{volume.name} is attached to {holder.name}, which is {holder.state}.", fix="Release that lease first."
        )
    volume.state, volume.due_at, volume.version = VolumeState.DELETING.value, now, volume.version + 1
    volume.save(update_fields=["state", "due_at", "version"])
    volume_metering.end_history(volume, at=now)
    _record_audit("volume.delete", volume, actor=actor, now=now, size_gib=volume.size_gib)
    outbox.enqueue("broker.reconcile_volume", volume.pk, tenant_id=volume.tenant_id, now=now)
    return volume


def reconcile_volume(volume_id: str, tenant_id: str, *, now: datetime) -> None:
    """Delete a volume in every cluster; it is deleted when none has anything left."""
    with tenant_scope(tenant_id):
        going = Volume.objects.filter(pk=volume_id, state__in=BEING_DELETED).exclude(due_at=None)
        volume = going.select_related("project").first()
        if volume is None:
            return
        Volume.objects.filter(pk=volume.pk).update(due_at=now + RECHECK_AFTER)
        where = list(Cluster.objects.filter(pk__in=[volume.cluster_id, *volume.remaining_clusters]).order_by("id"))
    # A list, not a generator: every cluster is asked, even if an earlier one is unreachable.
    if all([_is_deleted_in(volume, cluster, now) for cluster in where]):
        with tenant_scope(tenant_id):
            _finish_deletion(volume, now)


def _is_deleted_in(volume: Volume, cluster: Cluster, now: datetime) -> bool:
    volume_ref = VolumeRef(volume.pk, volume.size_gib, tenant_id=volume.tenant_id, project_id=volume.project_id)
    try:
        observation = cluster_provisioners.provisioner_of_cluster(cluster).remove_volume(volume_ref, now=now)
    except ClusterUnreachable as error:
        log.warning("volume not deleted yet", volume=volume.pk, cluster=cluster.name, why=str(error))
        return False
    if observation.seen is not ObservedState.GONE:
        again_s = observation.again_in_s
        outbox.enqueue("broker.reconcile_volume", volume.pk, tenant_id=volume.tenant_id, now=now, after_s=again_s)
    return observation.seen is ObservedState.GONE


def _finish_deletion(volume: Volume, now: datetime) -> None:
    block_new_quotas(volume.tenant_id)
    row = Volume.objects.filter(pk=volume.pk)
    row.filter(state=VolumeState.DELETED.value).update(due_at=None)
    gone = {"state": VolumeState.DELETED.value, "deleted_at": now, "due_at": None, "version": F("version") + 1}
    if row.filter(state=VolumeState.DELETING.value).update(**gone):  # a second worker returns nothing twice
        quotas.return_storage(volume.project, volume.size_gib)
        _record_audit("volume.gone", volume, actor=SYSTEM, now=now, size_gib=volume.size_gib)


def recheck_deleted(cluster: Cluster, *, now: datetime) -> None:
    """Check again that a cluster's deleted volumes are gone: an old state may have them."""
    was_there = Q(cluster=cluster) | Q(remaining_clusters__contains=cluster.pk)
    deleted = Volume.objects.filter(was_there, state=VolumeState.DELETED.value)
    with system_scope():
        tenants = sorted(set(deleted.values_list("tenant_id", flat=True)))
    for tenant_id in tenants:
        with tenant_scope(tenant_id):
            deleted.all().update(due_at=now)


def due_volumes(*, now: datetime) -> list[outbox.TaskMessage]:
    """Return a message for every volume whose deletion must be checked."""
    with system_scope():
        rows = Volume.objects.filter(due_at__lte=now).order_by("due_at", "id").values_list("id", "tenant_id")
        return [("broker.reconcile_volume", volume_id, tenant_id) for volume_id, tenant_id in rows[:BATCH]]


def _record_audit(action: str, volume: Volume, *, actor: Actor, now: datetime, **detail: object) -> None:
    audit.record(action, volume, actor=actor, now=now, project=volume.project_id, **detail)
