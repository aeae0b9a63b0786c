"""When volumes lived and how large they were: the chain that storage is metered by. Broker knows no money.

A volume counts from the second in which a lease was first active with it, for before there is nothing on it, until the
second in which somebody deleted it, for what its clusters take longer to take away is not its tenant's doing.
"""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, Subquery

from broker.domain.states import Isolation, PriceClass, VolumeState
from broker.models import Offering, OfferingState, Volume, VolumeStep
from tenants.models import Tenant
from tenants.models.audit import AuditEvent
from tenants.services.walls import as_sweep, as_tenant

DAY = timedelta(days=1)
BATCH = 500
FIRST_USE = "a lease is active with it"
DELETED = "somebody deleted it"
TICK = "metering tick"


def storage_in(region: str, *, now: datetime) -> Offering:
    """Return what volumes that lie in a region are counted by; made when it is first needed."""
    plain = {
        "profile": "volume",
        "isolation": Isolation.DEVICE.value,
        "price_class": PriceClass.ON_DEMAND.value,
        "label": f"Storage, {region}"[:120],
        "milli_units": 0,
        "memory_gb": 0,
        "created_at": now,
    }
    known, _ = Offering.objects.get_or_create(region=region, state=OfferingState.METERED, defaults=plain)
    return known


def begin(volume: Volume, *, at: datetime) -> None:
    """Write the first step of a volume that lies in a cluster; repeating it does nothing."""
    if volume.cluster is None or _last(volume.pk) is not None:
        return
    VolumeStep.objects.create(
        volume_id=volume.pk,
        seq=0,
        tenant_id=volume.tenant_id,
        project_id=volume.project_id,
        offering_id=storage_in(volume.cluster.region, now=at).pk,
        at=at.replace(microsecond=0),
        size_gib=volume.size_gib,
        cause=FIRST_USE,
    )


def end(volume: Volume, *, at: datetime) -> None:
    """Write that a volume counts no longer; one that nothing was ever on has no history."""
    _follow(volume.pk, at=at, size_gib=0, cause=DELETED)


def cut(volume: Volume, *, at: datetime) -> bool:
    """Close what is open of a volume at a moment, and let it go on from there; False where that changes nothing."""
    return _follow(volume.pk, at=at, size_gib=volume.size_gib, cause=TICK)


def _last(volume_id: str) -> VolumeStep | None:
    return VolumeStep.objects.filter(volume_id=volume_id).order_by("-seq").first()


def _follow(volume_id: str, *, at: datetime, size_gib: int, cause: str) -> bool:
    """Add a step to a volume's chain. Whoever calls this keeps the volume's row."""
    last, at = _last(volume_id), at.replace(microsecond=0)
    if last is None or not last.size_gib or (size_gib and at <= last.at):
        return False
    VolumeStep.objects.create(
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


def cut_all(tenant: Tenant, *, at: datetime) -> int:
    """Cut every volume of a tenant that counts at a moment; runs behind its wall, in a transaction."""
    _catch_up(tenant.pk)
    rows = Volume.objects.for_tenant(tenant).filter(state=VolumeState.READY.value, used_at__lt=at)
    kept = rows.select_for_update(of=("self",), no_key=True).order_by("pk")
    return sum(cut(volume, at=at) for volume in kept)


def _catch_up(tenant_id: str) -> None:
    """Write what an older release did not, before an upgrade or beside it: when volumes began, and when they ended."""
    used = Volume.objects.filter(tenant_id=tenant_id, used_at__isnull=False)
    steps = VolumeStep.objects.filter(volume_id=OuterRef("pk"))
    over = Exists(steps.filter(size_gib=0))
    locked = used.select_related("cluster").select_for_update(of=("self",), no_key=True).order_by("pk")
    for volume in locked.filter(~Exists(steps), state=VolumeState.READY.value):
        begin(volume, at=volume.used_at or volume.created_at)
    for volume in locked.filter(Exists(steps), ~over).exclude(state=VolumeState.READY.value):
        asked = AuditEvent.objects.filter(
            tenant_id=tenant_id, action="volume.delete", subject_id=volume.pk
        ).first()
        end(volume, at=asked.at if asked else volume.deleted_at or volume.created_at)


def to_cut(*, now: datetime) -> list[str]:
    """Name tenants some of whose volumes were last cut more than a day ago, or have no history yet."""
    last = VolumeStep.objects.filter(volume_id=OuterRef("pk")).order_by("-seq")
    with as_sweep():
        rows = Volume.objects.filter(state=VolumeState.READY.value, used_at__lte=now - DAY)
        cut_at = rows.annotate(cut_at=Subquery(last.values("at")[:1]))
        stale = cut_at.filter(Q(cut_at=None) | Q(cut_at__lte=now - DAY))
        return sorted(set(stale.values_list("tenant_id", flat=True)[: BATCH * BATCH]))


def cut_due(*, now: datetime) -> list[str]:
    """Cut once a day what volumes there are, so that what they have come to is known; return whose were."""
    found = []
    for tenant_id in to_cut(now=now):
        with as_tenant(tenant_id):
            if cut_all(Tenant.objects.get(pk=tenant_id), at=now):
                found.append(tenant_id)
    return found
