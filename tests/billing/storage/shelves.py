"""Volumes whose whole history is written at once, to the second, and storage with a price."""

import itertools
from datetime import datetime

from broker.models import Cluster, Offering, Volume, VolumeStep
from broker.services.volumes import histories
from tenants.models import Project
from tenants.services.walls import as_tenant
from tests.billing.histories import LONG_AGO, reprice

_numbers = itertools.count(1)
REGION = "eu-1"
GIB_HOUR = 100_000  # nano: about seven cents a GiB and month


def shelf(region: str = REGION) -> Cluster:
    """Return the cluster of a region that volumes lie in."""
    return Cluster.objects.get_or_create(
        region=region, defaults={"name": f"shelf {next(_numbers)}", "created_at": LONG_AGO}
    )[0]


def storage(
    nano_per_hour: int | None = GIB_HOUR, *, since: datetime = LONG_AGO, region: str = REGION
) -> Offering:
    """Return what volumes of a region are counted by, with a price."""
    offering = histories.storage_in(region, now=LONG_AGO)
    if nano_per_hour is not None:
        reprice(offering, nano_per_hour, since=since)
    return offering


def kept(
    project: Project,
    gib: int,
    since: datetime,
    until: datetime | None = None,
    *,
    region: str = REGION,
    by: str = "usr_ada",
) -> Volume:
    """Write a volume that has counted since a moment, until it was deleted."""
    with as_tenant(project.tenant_id):
        volume = Volume.objects.create(
            tenant_id=project.tenant_id,
            project=project,
            name=f"data {next(_numbers)}",
            size_gib=gib,
            cluster=shelf(region),
            used_at=since,
            created_at=since,
            requested_by=by,
            requested_by_label=f"{by} of old",
        )
        histories.begin(volume, at=since)
        if until:
            delete(volume, until)
    return volume


def delete(volume: Volume, at: datetime) -> None:
    with as_tenant(volume.tenant_id):
        Volume.objects.filter(pk=volume.pk).update(state="deleted", deleted_at=at)
        histories.end(volume, at=at)


def resized(volume: Volume, gib: int, at: datetime) -> None:
    """Write what no door does yet: from a moment on a volume has another size."""
    with as_tenant(volume.tenant_id):
        Volume.objects.filter(pk=volume.pk).update(size_gib=gib)
        histories._follow(volume.pk, at=at, size_gib=gib, cause="resized")


def steps(volume: Volume) -> list[tuple[int, datetime, int]]:
    with as_tenant(volume.tenant_id):
        rows = VolumeStep.objects.filter(volume_id=volume.pk).order_by("seq")
        return list(rows.values_list("seq", "at", "size_gib"))
