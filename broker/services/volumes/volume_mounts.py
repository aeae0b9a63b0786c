"""Use of volumes by leases: availability, location and first use.

A volume is in one cluster as soon as there may be data on it.
"""

from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from broker.domain.lifecycle.states import VolumeState
from broker.models import Cluster, Gpu, Lease, Offering, Volume
from broker.services.volumes import volume_metering
from broker.services.volumes.volume_errors import VolumeBeingDeleted, VolumeInUse, VolumeOutOfReach
from tenants.models import Project
from tenants.services.errors import InvalidValue, ObjectNotFound


def available_volumes(project: Project) -> QuerySet[Volume]:
    """Return the volumes of a project that a new lease may use."""
    held = Lease.objects.live().filter(volume=OuterRef("pk"))
    ready = Volume.objects.filter(project=project, state=VolumeState.READY.value)
    return ready.filter(~Exists(held)).order_by("name")


def lock_volume(volume_id: str) -> None:
    """Lock a volume so that concurrent requests for it run one after the other."""
    list(Volume.objects.select_for_update(of=("self",), no_key=True).filter(pk=volume_id).values_list("pk"))


def get_mountable(volume_id: str, *, project: Project, offering: Offering, quantity: int, same_node: bool) -> Volume:
    """Return a volume that a new lease of a project may use, or raise ProblemError."""
    volume = Volume.objects.select_related("cluster").filter(pk=volume_id, project=project).first()
    if volume is None:
        raise ObjectNotFound(
            f"Volume {volume_id!r} does not exist in this project.", fix="Choose one from the list of volumes."
        )
    if volume.state != VolumeState.READY:
        raise VolumeBeingDeleted(f"{volume.name} is {volume.state}.", fix="Choose another volume, or create one.")
    if holder := Lease.objects.live().filter(volume=volume).first():
        raise VolumeInUse(
            f"{volume.name} is attached to {holder.name}, which is {holder.state}.",
            fix="Release that lease, start it again, or choose another volume.",
        )
    if quantity > 1 and not same_node:
        raise InvalidValue(
            "volume",
            "A volume can be mounted on only one node at a time.",
            fix="Request all slices on one node, or a single slice.",
        )
    if volume.cluster and not _is_reachable(volume.cluster, offering):
        raise VolumeOutOfReach(
            f"{volume.name} is in {volume.cluster.name}, where {offering.label} is not available.",
            fix="Choose an offering of that cluster, or another volume.",
        )
    return volume


def _is_reachable(cluster: Cluster, offering: Offering) -> bool:
    same_model = Gpu.objects.filter(node__cluster=cluster, gpu_model_id=offering.gpu_model_id)
    return cluster.region == offering.region and same_model.exists()


def cluster_name_of(volume_id: str | None) -> str:
    """Return the name of the cluster a volume is in; empty if it has none."""
    if not volume_id:
        return ""
    return Volume.objects.filter(pk=volume_id).values_list("cluster__name", flat=True).first() or ""


def assign_cluster(lease: Lease, cluster: str) -> None:
    """Assign a volume without a cluster to the one where its lease was placed."""
    if lease.volume_id:
        there = Cluster.objects.get(name=cluster)
        Volume.objects.filter(pk=lease.volume_id, cluster=None).update(cluster=there)


def detach_from_cluster(lease: Lease) -> None:
    """Detach an unused volume from its cluster, so that its lease may go elsewhere.

    The cluster is remembered, because it may have created storage.
    """
    volume = lease.volume_id and Volume.objects.filter(pk=lease.volume_id, used_at=None).first()
    if volume and volume.cluster_id:
        volume.remaining_clusters = sorted({*volume.remaining_clusters, volume.cluster_id})
        volume.cluster = None
        volume.save(update_fields=["remaining_clusters", "cluster"])


def record_first_use(lease: Lease, *, now: datetime) -> None:
    """Record that a volume may hold data from now on, and start metering it."""
    if lease.volume_id and Volume.objects.filter(pk=lease.volume_id, used_at=None).update(used_at=now):
        volume_metering.start_history(
            Volume.objects.select_related("cluster").get(pk=lease.volume_id), at=lease.state_since
        )
