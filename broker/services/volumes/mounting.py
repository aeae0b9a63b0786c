"""Which lease may have a volume, and which cards can reach it: it lies in one cluster, once something is on it."""

from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from broker.domain.states import VolumeState
from broker.models import Cluster, Gpu, Lease, Offering, Volume
from broker.services.volumes import histories
from broker.services.volumes.refusals import OutOfReach, VolumeGoing, VolumeInUse
from tenants.models import Project
from tenants.services.refusals import Invalid, Missing


def free(project: Project) -> QuerySet[Volume]:
    """Return the volumes of a project that a new lease may have."""
    held = Lease.objects.live().filter(volume=OuterRef("pk"))
    ready = Volume.objects.filter(project=project, state=VolumeState.READY.value)
    return ready.filter(~Exists(held)).order_by("name")


def lock(volume_id: str) -> None:
    """Let of two who want the same volume one come first; the row is judged after that."""
    list(Volume.objects.select_for_update(of=("self",), no_key=True).filter(pk=volume_id).values_list("pk"))


def mountable(
    volume_id: str, *, project: Project, offering: Offering, quantity: int, same_node: bool
) -> Volume:
    """Return a volume that a new lease of a project may have, or raise Refused."""
    volume = Volume.objects.select_related("cluster").filter(pk=volume_id, project=project).first()
    if volume is None:
        raise Missing(
            f"There is no volume {volume_id!r} in this project.", fix="Choose one from the list of volumes."
        )
    if volume.state != VolumeState.READY:
        raise VolumeGoing(f"{volume.name} is {volume.state}.", fix="Choose another one, or make one.")
    if holder := Lease.objects.live().filter(volume=volume).first():
        raise VolumeInUse(
            f"{holder.name} has {volume.name}, and is {holder.state}.",
            fix="Release that lease, start it again, or choose another volume.",
        )
    if quantity > 1 and not same_node:
        raise Invalid(
            "volume", "One node at a time mounts a volume.", fix="Ask for all slices on one node, or for one."
        )
    if volume.cluster and not _within_reach(volume.cluster, offering):
        raise OutOfReach(
            f"{volume.name} lies in {volume.cluster.name}, where {offering.label} is not sold.",
            fix="Choose an offering of that cluster, or another volume.",
        )
    return volume


def _within_reach(cluster: Cluster, offering: Offering) -> bool:
    same_model = Gpu.objects.filter(node__cluster=cluster, gpu_model_id=offering.gpu_model_id)
    return cluster.region == offering.region and same_model.exists()


def home_of(volume_id: str | None) -> str:
    """Return the name of the cluster in which a volume lies; empty while it lies nowhere, or where there is none."""
    if not volume_id:
        return ""
    return Volume.objects.filter(pk=volume_id).values_list("cluster__name", flat=True).first() or ""


def settle(lease: Lease, cluster: str) -> None:
    """Let a volume that lies nowhere yet lie where its lease was placed."""
    if lease.volume_id:
        there = Cluster.objects.get(name=cluster)
        Volume.objects.filter(pk=lease.volume_id, cluster=None).update(cluster=there)


def leave(lease: Lease) -> None:
    """Let a volume on which nothing can be yet go elsewhere with its lease; what was made of it here is remembered."""
    volume = lease.volume_id and Volume.objects.filter(pk=lease.volume_id, used_at=None).first()
    if volume and volume.cluster_id:
        volume.left_in = sorted({*volume.left_in, volume.cluster_id})
        volume.cluster = None
        volume.save(update_fields=["left_in", "cluster"])


def in_use(lease: Lease, *, now: datetime) -> None:
    """Note that from now on there may be something on the volume, and begin to count it."""
    if lease.volume_id and Volume.objects.filter(pk=lease.volume_id, used_at=None).update(used_at=now):
        histories.begin(Volume.objects.select_related("cluster").get(pk=lease.volume_id), at=lease.at)
