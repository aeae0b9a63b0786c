"""Spot reclaims: notice to spot leases for a queued lease of higher class.

The slices it will get are promised to it at once, so no other request counts on them. A reclaim ends when the
lease is placed, when it no longer waits, or when the slices cannot be had any more; leases still under notice
then keep running.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import IntegrityError, connection, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange

from broker.domain.lifecycle.spot_terms import RECLAIMING_CLASSES, ReclaimNoticeState, SpotReclaimState
from broker.domain.lifecycle.states import LeaseState, PriceClass
from broker.domain.placement.gangs.topology import LINK_LIMITS
from broker.domain.placement.spot_reclaim import ReclaimableGpu, ReclaimRequest, choose_reclaim
from broker.models import Gpu, Lease, PromisedSlot, ReclaimNotice, SpotReclaim, StaleLease
from broker.services.inventory.gpu_catalogue import profile_named, profile_of
from broker.services.leases import abandoned_placements, spot_notices
from broker.services.placement.gpu_index import DEDICATED, GpuIndex
from broker.services.placement.placement_gpus import PlacementGpu, PoolKey
from broker.services.placement.shared_index import current_index
from broker.services.placement.slot_search import FoundSlots, PlacementRequest, find_slots, pool_of
from broker.services.queue import lease_placement
from broker.services.queue.gpu_reservations import ENDING_TIMEOUT
from broker.services.queue.reclaimable_slices import ReclaimableSlices, load_reclaimable_slices
from broker.services.queue.starvation_guard import QueuedLease, RequestShape
from ports import outbox
from ports.postgres.sql_statements import query_rows
from tenants.services.rls import system_scope, tenant_scope

LOCK_SQL = "SELECT pg_try_advisory_xact_lock(5, hashtext(%s))"  # one reclaim of a pool is planned at a time


@dataclass(frozen=True)
class _ReclaimPlan:
    """The leases that get notice, and the slots that the waiting lease gets."""

    leases: tuple[str, ...]
    found: FoundSlots
    slices: ReclaimableSlices

    @property
    def notice(self) -> timedelta:
        """Return the longest notice that its leases were promised."""
        return max(self.slices.notices[lease_id] for lease_id in self.leases)


def may_reclaim(price_class: str) -> bool:
    """Return whether leases of a price class reclaim spot leases."""
    return PriceClass(price_class) in RECLAIMING_CLASSES


class QueueReclaims:
    """Spot reclaims of one run of a pool's queue."""

    def __init__(self, pool: PoolKey, *, now: datetime) -> None:
        self._pool, self._now = pool, now
        waiting = SpotReclaim.objects.open().of_pool(*pool).values_list("waiting_lease", flat=True)
        self.promised = frozenset(waiting)  # the leases that wait for slots of their own
        self._vain = set[tuple[RequestShape, str | None]]()  # requests, with their volumes, that no reclaim helps
        self._any_reclaimable: bool | None = None  # unknown until the first lease finds no slot

    def give_notice(self, entry: QueuedLease, *, reserved: frozenset[str]) -> bool:
        """Give notice to spot leases for a waiting lease; return whether any got it.

        It gets no slots on GPUs that are `reserved` for older leases.
        """
        request = entry.shape, entry.volume_id
        if not may_reclaim(entry.price_class) or request in self._vain or not self._has_reclaimable():
            return False
        with tenant_scope(entry.tenant_id):
            lease = Lease.objects.select_related("offering").filter(pk=entry.lease_id, state="queued").first()
            if lease is not None and give_notice_for(lease, now=self._now, reserved=reserved):
                return True
        self._vain.add(request)
        return False

    def _has_reclaimable(self) -> bool:
        if self._any_reclaimable is None:
            self._any_reclaimable = bool(load_reclaimable_slices(self._pool, now=self._now).leases)
        return self._any_reclaimable


def give_notice_for(lease: Lease, *, now: datetime, reserved: frozenset[str] = frozenset()) -> bool:
    """Give notice to spot leases if a queued lease can then start.

    Returns whether any got it. Nothing happens where the lease waits for promised slots already, or would not
    fit all the same.
    """
    if not may_reclaim(lease.offering.price_class):
        return False
    try:
        with transaction.atomic():
            return _is_planner(lease) and _give_notice(lease, reserved, now=now)
    except (StaleLease, IntegrityError):
        return False  # something changed since it was read: the next run of the queue plans again


def preview_notice_s(lease: Lease, *, now: datetime) -> int | None:
    """Return how long notice would be for a lease that finds no slot now.

    None where no spot lease would get notice. The lease need not be saved; nothing is written.
    """
    if not may_reclaim(lease.offering.price_class):
        return None
    slices = load_reclaimable_slices(pool_of(lease.offering), now=now)
    try:
        with tenant_scope(lease.tenant_id):
            plan = _plan(lease, slices, now=now) if slices.leases else None
    except StaleLease:
        return None
    return int(plan.notice.total_seconds()) if plan else None


def _is_planner(lease: Lease) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(LOCK_SQL, ["|".join(pool_of(lease.offering))])
        return bool(cursor.fetchone()[0])


def _give_notice(lease: Lease, reserved: frozenset[str], *, now: datetime) -> bool:
    if SpotReclaim.objects.open().filter(waiting_lease=lease.pk).exists():
        return False
    slices = load_reclaimable_slices(pool_of(lease.offering), now=now)
    if not slices.leases:
        return False
    with tenant_scope(lease.tenant_id):
        plan = _plan(lease, slices, now=now, reserved=reserved)
    if plan is None:
        return False
    _lock_for(lease, plan)
    reclaim = _write_reclaim(lease, plan, now=now)
    for lease_id in sorted(plan.leases):
        with tenant_scope(slices.tenants[lease_id]):
            spot_notices.give_notice(lease_id, reclaim, now=now)
    after_s = (reclaim.reclaim_at - now).total_seconds() + ENDING_TIMEOUT.total_seconds()
    outbox.enqueue("broker.reconcile_spot_reclaim", reclaim.pk, now=now, after_s=after_s)
    return True


def _plan(
    lease: Lease, slices: ReclaimableSlices, *, now: datetime, reserved: frozenset[str] = frozenset()
) -> _ReclaimPlan | None:
    """Return the cheapest plan; None where none is needed, or none helps."""
    wanted = lease_placement.placement_request(lease)
    for each in abandoned_placements.requests_to_try(lease, wanted, now=now):
        request = replace(each, not_at=reserved)
        with current_index() as stock:
            try:
                chosen = _choose_leases(request, slices, stock)
                if chosen:
                    found = find_slots(request, stock, instead=_gpus_without(slices, chosen, stock))
                    return _ReclaimPlan(chosen, found, slices) if found else None
            except ValueError:  # a slice was released between the two reads
                raise StaleLease(lease.pk) from None
        if chosen is not None:
            return None
    return None


def _choose_leases(request: PlacementRequest, slices: ReclaimableSlices, stock: GpuIndex) -> tuple[str, ...] | None:
    """Return the leases to reclaim; None where the request would not fit."""
    profile, on_node = profile_of(request.offering), request.same_node or bool(request.topology)
    dedicated = request.isolation in DEDICATED
    gpus = [
        ReclaimableGpu(
            gpu.gpu,
            gpu.node if on_node else gpu.cluster,
            gpu.without_slices(slices.freed.get(gpu.gpu, ())).state,
            gpu.cut,
            only_when_empty=not (dedicated or gpu.shares_soft),
        )
        for gpu in stock.by_pool[request.pool].values()
        if _may_use(gpu, request)
    ]
    linked = None
    if request.topology:
        limit = LINK_LIMITS[request.topology]
        linked = {
            node: lambda free, links=stock.links[node]: links.largest_linked_count(free, limit)
            for node in {gpu.place for gpu in gpus}
            if node in stock.links
        }
    choice = choose_reclaim(ReclaimRequest(profile, request.quantity, linked), gpus, slices.leases)
    return None if choice is None else tuple(lease.lease_id for lease in choice.leases)


def _may_use(gpu: PlacementGpu, request: PlacementRequest) -> bool:
    return (
        gpu.sellable
        and request.cluster in ("", gpu.cluster)
        and gpu.cluster not in request.not_in
        and gpu.node not in request.not_on
        and gpu.gpu not in request.not_at
        and gpu.sold_as(request.isolation)
    )


def _gpus_without(slices: ReclaimableSlices, lease_ids: Sequence[str], stock: GpuIndex) -> list[PlacementGpu]:
    """Return the GPUs as they are once some leases have ended."""
    freed = slices.on_gpus(lease_ids)
    return [stock.gpus[gpu].without_slices(its) for gpu, its in freed.items() if gpu in stock.gpus]


def _lock_for(lease: Lease, plan: _ReclaimPlan) -> None:
    """Lock the GPUs and the waiting lease; raise StaleLease where the plan no longer holds."""
    wanted = Gpu.objects.sellable().filter(pk__in=plan.found.gpus).order_by("pk")
    if len(wanted.select_for_update(of=("self",), no_key=True).values_list("pk")) < len(plan.found.gpus):
        raise StaleLease(lease.pk)
    if _is_taken(plan, lease.offering.model):
        raise StaleLease(lease.pk)
    with tenant_scope(lease.tenant_id):
        queued = Lease.objects.filter(pk=lease.pk, state=LeaseState.QUEUED).select_for_update(no_key=True)
        if not queued.values_list("pk"):
            raise StaleLease(lease.pk)


def _is_taken(plan: _ReclaimPlan, model: str) -> bool:
    """Return whether a lease that stays holds a slot of the plan."""
    freed = plan.slices.on_gpus(plan.leases)
    for gpu, profile, isolation, start, _ in query_rows(
        "broker/placement/occupied_slices", {"gpus": list(plan.found.gpus)}
    ):
        held = profile_named(model, profile, isolation).placed_at(start)
        wanted = any(slot.gpu == gpu and slot.placement.mask & held.mask for slot in plan.found.slots)
        if wanted and held not in [each.placement for each in freed.get(gpu, ())]:
            return True
    return False


def _write_reclaim(lease: Lease, plan: _ReclaimPlan, *, now: datetime) -> SpotReclaim:
    model, region = pool_of(lease.offering)
    at = now.replace(microsecond=0)
    if at < now:  # in the ledger times are whole seconds, and a notice is never shorter than promised
        at += timedelta(seconds=1)
    reclaim = SpotReclaim.objects.create(
        gpu_model_id=model,
        region=region,
        waiting_lease=lease.pk,
        noticed_at=now,
        reclaim_at=at + plan.notice,
        state_at=now,
    )
    PromisedSlot.objects.bulk_create(
        PromisedSlot(
            reclaim=reclaim,
            lease=lease.pk,
            gpu_id=slot.gpu,
            placement=NumericRange(slot.placement.start, slot.placement.end, "[)"),
            profile=lease.offering.profile,
            isolation=lease.offering.isolation,
        )
        for slot in plan.found.slots
    )
    with tenant_scope(lease.tenant_id):
        lease_placement.write_pending_reason([lease.pk], _waiting_text(len(plan.leases), reclaim))
    return reclaim


def _waiting_text(count: int, reclaim: SpotReclaim) -> str:
    leases = "a spot lease ends" if count == 1 else f"{count} spot leases end"
    return (
        f"Starts after {reclaim.reclaim_at:%H:%M:%S} UTC, when {leases}. Notice was given at"
        f" {reclaim.noticed_at:%H:%M:%S} UTC."
    )


def reconcile_spot_reclaim(reclaim_id: str, *, now: datetime) -> None:
    """End a reclaim whose lease no longer waits, or cannot get the slices. Idempotent."""
    reclaim = SpotReclaim.objects.open().filter(pk=reclaim_id).first()
    if reclaim is None:
        return
    with system_scope():
        state = Lease.objects.filter(pk=reclaim.waiting_lease).values_list("state", flat=True).first()
    if state in (LeaseState.RELEASING, LeaseState.RELEASED, None):
        _end_reclaim(reclaim, SpotReclaimState.WITHDRAWN, why="the request was withdrawn", now=now)
    elif state != LeaseState.QUEUED:
        _end_reclaim(reclaim, SpotReclaimState.DONE, why="the request was placed", now=now)
    elif why := _obstacle(reclaim, now):
        _end_reclaim(reclaim, SpotReclaimState.WITHDRAWN, why=why, now=now)


def _obstacle(reclaim: SpotReclaim, now: datetime) -> str:
    """Return why the promised slots cannot be had; empty while they can."""
    gpus = set(reclaim.slots.values_list("gpu", flat=True))
    if Gpu.objects.sellable().filter(pk__in=gpus).count() < len(gpus):
        return "what it would free is out of service"
    if now > reclaim.reclaim_at + ENDING_TIMEOUT:
        return "the slices did not become free in time"
    with system_scope():
        ((is_taken,),) = query_rows("broker/queue/promised_slot_taken", {"reclaim": reclaim.pk})
    return "the slices were taken by another lease" if is_taken else ""


@transaction.atomic
def _end_reclaim(reclaim: SpotReclaim, state: SpotReclaimState, *, why: str, now: datetime) -> None:
    """End a reclaim; its leases that still run under notice keep running."""
    if not SpotReclaim.objects.open().filter(pk=reclaim.pk).update(state=state.value, state_at=now, why=why):
        return  # another worker was faster
    reclaim.slots.all().delete()
    with system_scope():
        given = ReclaimNotice.objects.filter(reclaim=reclaim, state=ReclaimNoticeState.GIVEN.value)
        notices = list(given.order_by("lease"))
    for notice in notices:
        with tenant_scope(notice.tenant_id):
            spot_notices.withdraw_notice(notice, why=why, now=now)
    outbox.enqueue("broker.run_queue", f"{reclaim.gpu_model_id}|{reclaim.region}", now=now)


def due_reclaims() -> list[outbox.TaskMessage]:
    """Return a message for every open reclaim."""
    return [("broker.reconcile_spot_reclaim", pk, "") for pk in SpotReclaim.objects.open().values_list("pk", flat=True)]
