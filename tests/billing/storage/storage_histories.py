"""Volume histories, and storage with a price."""

import itertools
from datetime import datetime

from broker.models import Cluster, Offering, Volume, VolumeSizeChange
from broker.services.volumes import volume_metering
from tenants.models import Project
from tenants.services.rls import tenant_scope
from tests.billing.histories import LONG_AGO, set_price

_numbers = itertools.count(1)
REGION = "eu-1"
GIB_HOUR = 100_000  # nano: about seven cents a GiB and month


def storage_cluster(region: str = REGION) -> Cluster:
    """Return the cluster of a region that volumes are in."""
    return Cluster.objects.get_or_create(
        region=region, defaults={"name": f"shelf {next(_numbers)}", "created_at": LONG_AGO}
    )[0]


def create_priced_storage(
    nano_per_hour: int | None = GIB_HOUR, *, since: datetime = LONG_AGO, region: str = REGION
) -> Offering:
    """Return the storage offering of a region, with a price."""
    offering = volume_metering.storage_offering(region, now=LONG_AGO)
    if nano_per_hour is not None:
        set_price(offering, nano_per_hour, since=since)
    return offering


def add_volume_history(
    project: Project,
    gib: int,
    since: datetime,
    until: datetime | None = None,
    *,
    region: str = REGION,
    by: str = "usr_ada",
) -> Volume:
    """Create a volume that is metered since a time, until it was deleted."""
    with tenant_scope(project.tenant_id):
        volume = Volume.objects.create(
            tenant_id=project.tenant_id,
            project=project,
            name=f"data {next(_numbers)}",
            size_gib=gib,
            cluster=storage_cluster(region),
            used_at=since,
            created_at=since,
            requested_by=by,
            requested_by_label=f"{by} of old",
        )
        volume_metering.start_history(volume, at=since)
        if until:
            delete_volume(volume, until)
    return volume


def delete_volume(volume: Volume, at: datetime) -> None:
    with tenant_scope(volume.tenant_id):
        Volume.objects.filter(pk=volume.pk).update(state="deleted", deleted_at=at)
        volume_metering.end_history(volume, at=at)


def resize_volume(volume: Volume, gib: int, at: datetime) -> None:
    """Change the size of a volume from a time on; no page offers this yet."""
    with tenant_scope(volume.tenant_id):
        Volume.objects.filter(pk=volume.pk).update(size_gib=gib)
        volume_metering._append_entry(volume.pk, at=at, size_gib=gib, cause="resized")


def size_changes(volume: Volume) -> list[tuple[int, datetime, int]]:
    with tenant_scope(volume.tenant_id):
        rows = VolumeSizeChange.objects.filter(volume_id=volume.pk).order_by("seq")
        return list(rows.values_list("seq", "at", "size_gib"))
