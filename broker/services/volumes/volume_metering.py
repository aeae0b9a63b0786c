"""Size history of volumes, which storage is metered by.

A volume counts from the second in which a lease was first active with it, because before there is nothing
on it, until the second in which somebody deleted it; the time that its clusters take to remove it is not
charged.
"""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, Subquery

from broker.domain.lifecycle.states import Isolation, PriceClass, VolumeState
from broker.models import Offering, OfferingState, Volume, VolumeSizeChange
from broker.models.transitions import TICK_CAUSE
from tenants.models import Tenant
from tenants.models.audit import AuditEvent
from tenants.services.rls import system_scope, tenant_scope

DAY = timedelta(days=1)
BATCH = 500
FIRST_USE_CAUSE = "an active lease uses it"
DELETED_CAUSE = "deleted by a user"


def storage_offering(region: str, *, now: datetime) -> Offering:
    """Return the storage offering of a region, created on first use."""
    plain = {
        "profile": "volume",
        "isolation": Isolation.DEVICE.value,
        "price_class": PriceClass.ON_DEMAND.value,
        "label": f"Storage, {region}"[:120],
        "milli_units": 0,
        "memory_gb": 0,
        "cpu_milli": 0,
        "host_memory_mib": 0,
        "scratch_mib": 0,
        "created_at": now,
    }
    known, _ = Offering.objects.get_or_create(region=region, state=OfferingState.METERED, defaults=plain)
    return known


def start_history(volume: Volume, *, at: datetime) -> None:
    """Start a volume's history; repeating it does nothing."""
    if volume.cluster is None or _latest_entry(volume.pk) is not None:
        return
    VolumeSizeChange.objects.create(
        volume_id=volume.pk,
        seq=0,
        tenant_id=volume.tenant_id,
        project_id=volume.project_id,
        offering_id=storage_offering(volume.cluster.region, now=at).pk,
        at=at.replace(microsecond=0),
        size_gib=volume.size_gib,
        cause=FIRST_USE_CAUSE,
    )


def end_history(volume: Volume, *, at: datetime) -> None:
    """End a volume's history; a volume that was never used has none."""
    _append_entry(volume.pk, at=at, size_gib=0, cause=DELETED_CAUSE)


def add_volume_tick(volume: Volume, *, at: datetime) -> bool:
    """Add a metering tick to a volume's history; return whether it did."""
    return _append_entry(volume.pk, at=at, size_gib=volume.size_gib, cause=TICK_CAUSE)


def _latest_entry(volume_id: str) -> VolumeSizeChange | None:
    return VolumeSizeChange.objects.filter(volume_id=volume_id).order_by("-seq").first()


def _append_entry(volume_id: str, *, at: datetime, size_gib: int, cause: str) -> bool:
    """Append a step to a volume's history. The caller has locked the volume's row."""
    last, at = _latest_entry(volume_id), at.replace(microsecond=0)
    if last is None or not last.size_gib or (size_gib and at <= last.at):
        return False
    VolumeSizeChange.objects.create(
        volume_id=volume_id,
        seq=last.seq + 1,
        tenant_id=last.tenant_id,
        project_id=last.project_id,
        offering_id=last.offering_id,
        at=max(at, last.at),
        prev_seq=last.seq,
        prev_at=last.at,
        prev_gib=last.size_gib,
        size_gib=size_gib,
        cause=cause,
    )
    return True


def add_tenant_ticks(tenant: Tenant, *, at: datetime) -> int:
    """Add a metering tick for every counted volume of a tenant; return how many.

    Runs in the tenant's row-level security scope, in a transaction.
    """
    _write_missing_entries(tenant.pk)
    rows = Volume.objects.filter(tenant=tenant).filter(state=VolumeState.READY.value, used_at__lt=at)
    locked = rows.select_for_update(of=("self",), no_key=True).order_by("pk")
    return sum(add_volume_tick(volume, at=at) for volume in locked)


def _write_missing_entries(tenant_id: str) -> None:
    """Write missing starts and ends that an older release did not write."""
    used = Volume.objects.filter(tenant_id=tenant_id, used_at__isnull=False)
    steps = VolumeSizeChange.objects.filter(volume_id=OuterRef("pk"))
    over = Exists(steps.filter(size_gib=0))
    locked = used.select_related("cluster").select_for_update(of=("self",), no_key=True).order_by("pk")
    for volume in locked.filter(~Exists(steps), state=VolumeState.READY.value):
        start_history(volume, at=volume.used_at or volume.created_at)
    for volume in locked.filter(Exists(steps), ~over).exclude(state=VolumeState.READY.value):
        requested = AuditEvent.objects.filter(tenant_id=tenant_id, action="volume.delete", subject_id=volume.pk).first()
        end_history(volume, at=requested.at if requested else volume.deleted_at or volume.created_at)


def tenants_due(*, now: datetime) -> list[str]:
    """Return tenants with volumes without a metering tick for more than a day.

    Volumes without any history count, too.
    """
    last = VolumeSizeChange.objects.filter(volume_id=OuterRef("pk")).order_by("-seq")
    with system_scope():
        rows = Volume.objects.filter(state=VolumeState.READY.value, used_at__lte=now - DAY)
        cut_at = rows.annotate(cut_at=Subquery(last.values("at")[:1]))
        stale = cut_at.filter(Q(cut_at=None) | Q(cut_at__lte=now - DAY))
        return sorted(set(stale.values_list("tenant_id", flat=True)[: BATCH * BATCH]))


def add_due_ticks(*, now: datetime) -> list[str]:
    """Add daily metering ticks; return the tenants whose volumes had one."""
    found = []
    for tenant_id in tenants_due(now=now):
        with tenant_scope(tenant_id):
            if add_tenant_ticks(Tenant.objects.get(pk=tenant_id), at=now):
                found.append(tenant_id)
    return found
