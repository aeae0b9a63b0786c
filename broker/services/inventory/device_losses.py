"""Devices that a node no longer offers, where nobody says which lease held them.

A device plugin counts devices and names none. Where fewer are left than leases hold, one of the leases has lost its
device. The runbook docs/runbooks/node-lost.md lists what tells which; where nothing does, no lease is ended.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from broker.domain.lifecycle.states import LeaseCondition, LeaseState
from broker.models import Allocation, Gpu, LayoutPolicy
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.kubernetes.observe.pod_observation import UNHEALTHY_DEVICE
from broker.services.inventory.foreign_use import discovered_name, requested_name
from broker.services.inventory.gpu_matching import has_own_uuid
from ports import outbox
from tenants.services.rls import system_scope

SOME_MISSING = "its node offers fewer devices than leases hold; which lease is affected is being checked"
NONE_OFFERED = "its node offers no devices at present; the leases on them are being examined"
EXAMINED_REASONS = (SOME_MISSING, NONE_OFFERED)
FOUND_LOST = "its node no longer offers it, and its lease holds more devices than are left"
# A device plugin that restarts offers nothing meanwhile. After this a kubelet forgets the devices of one that is gone.
PLUGIN_RESTART = timedelta(minutes=5)
MARKED_AFTER = timedelta(seconds=15)  # shorter gaps are not shown to tenants
SENTENCE = (
    "It offers {offered} {name}, and leases hold {held}: {what}. The leases are marked and nothing new is placed;"
    " repair the device or drain the node."
)
ONE_FAILED, MAY_RESTART = (
    "a device failed, and its device plugin does not say which",
    "its device plugin may be restarting",
)


class _HeldDevice(NamedTuple):
    """A device that an active lease holds."""

    name: str  # resource name
    lease_id: str
    tenant_id: str
    gpu_id: str
    is_unhealthy: bool  # its kubelet says so


@dataclass(frozen=True, slots=True)
class DeviceLoss:
    """Devices that are missing from a node's report, and the leases concerned."""

    reason: str = ""  # why its leases are examined; empty: they are not
    sentence: str = ""  # for operators
    lost: frozenset[str] = frozenset()  # rows of GPUs whose leases hold more devices than are left
    since: datetime | None = None  # since when those are lost; None: since now
    unreported: Mapping[str, int] = field(default_factory=dict)  # devices of leases on GPUs without report, by name
    leases: tuple[tuple[str, str], ...] = ()  # id and tenant

    def enqueue_checks(self, *, now: datetime) -> None:
        """Enqueue a check of each lease, once a short gap would be over."""
        for lease_id, tenant_id in self.leases:
            delay_s = MARKED_AFTER.total_seconds()
            outbox.enqueue("broker.reconcile_lease", lease_id, tenant_id=tenant_id, now=now, after_s=delay_s)


NO_LOSS = DeviceLoss()


def find_device_loss(known: Sequence[Gpu], report: DiscoveredNode, *, now: datetime) -> DeviceLoss:
    """Return which leases may have lost a device that a node no longer offers."""
    rows = [gpu for gpu in known if gpu.layout_policy == LayoutPolicy.FIXED and not has_own_uuid(gpu)]
    is_explained = not report.gpus and not report.offers_none  # by its labels, or by an incomplete report
    if not rows or is_explained:
        return NO_LOSS
    offered = Counter(discovered_name(gpu, cut) for gpu in report.gpus for cut in gpu.cuts)
    booked = Counter(requested_name(cut) for gpu in rows for cut in gpu.fixed_layout)
    if all(offered[name] >= count for name, count in booked.items()):
        return NO_LOSS
    reported = {gpu.index for gpu in report.gpus}
    missing = {gpu.pk for gpu in rows if gpu.index not in reported}
    by_name: dict[str, list[_HeldDevice]] = defaultdict(list)
    every, active = _load_held_devices(rows)
    for each in active:
        if not each.is_unhealthy:
            by_name[each.name].append(each)
    unreported = Counter(each.name for each in every if each.gpu_id in missing)
    for name, held in sorted(by_name.items()):
        if len(held) > offered[name]:
            loss = _examine(name, offered[name], held, missing=missing, rows=rows, report=report, now=now)
            return replace(loss, unreported=unreported)
    return DeviceLoss(unreported=unreported)


def _examine(
    name: str,
    offered: int,
    held: Sequence[_HeldDevice],
    *,
    missing: set[str],
    rows: Iterable[Gpu],
    report: DiscoveredNode,
    now: datetime,
) -> DeviceLoss:
    """Return the loss where more devices of a name are held than offered."""
    reason = SOME_MISSING if offered else NONE_OFFERED
    began = (gpu.lost_since or gpu.health_since for gpu in rows if gpu.lost_since or gpu.health_reason == reason)
    since = min(began, default=now)
    affected = set[str]()
    if offered or (report.all_unhealthy and now - since >= PLUGIN_RESTART):
        affected = {lease for lease, count in Counter(each.lease_id for each in held).items() if count > offered}
    doubted = {each.gpu_id for each in held if each.lease_id not in affected}
    what = ONE_FAILED if offered else MAY_RESTART
    return DeviceLoss(
        reason=reason,
        sentence=SENTENCE.format(name=name, offered=offered, held=len(held), what=what),
        lost=frozenset({each.gpu_id for each in held if each.lease_id in affected} & missing - doubted),
        since=None if offered else since,
        leases=tuple(sorted({(each.lease_id, each.tenant_id) for each in held})),
    )


def _load_held_devices(rows: Iterable[Gpu]) -> tuple[list[_HeldDevice], list[_HeldDevice]]:
    """Return all devices that leases hold, and those of active leases."""
    cuts = {(gpu.pk, cut["start"]): requested_name(cut) for gpu in rows for cut in gpu.fixed_layout}
    every, active = list[_HeldDevice](), list[_HeldDevice]()
    with system_scope():
        held = Allocation.objects.filter(gpu__in={pk for pk, _ in cuts}, released_at=None).select_related("lease")
        for each in held.order_by("pk"):
            lease, name = each.lease, cuts.get((each.gpu_id, each.placement.lower), "")
            is_unhealthy = lease.conditions.get(LeaseCondition.UNREACHABLE, "").startswith(UNHEALTHY_DEVICE)
            device = _HeldDevice(name, lease.pk, lease.tenant_id, each.gpu_id, is_unhealthy)
            every.append(device)
            if lease.state == LeaseState.ACTIVE and each.generation == lease.generation and not each.leaving_since:
                active.append(device)
    return every, active
