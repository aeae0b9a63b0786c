"""Placement of one queued lease, or a plain reason why it waits."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import NumericRange
from django.db.models import F

from broker.domain.geometry.published_profiles import available_placements
from broker.domain.lifecycle.states import LeaseState
from broker.domain.placement.slots import Slot
from broker.models import Allocation, Gpu, Lease, Offering, StaleLease
from broker.services.inventory.gpu_catalogue import profile_of
from broker.services.leases import abandoned_placements, spot_notices
from broker.services.placement.gpu_index import GpuIndex
from broker.services.placement.placement_gpus import PlacementGpu, describe_placement
from broker.services.placement.shared_index import current_index
from broker.services.placement.slot_search import (
    TOPOLOGY_WORDS,
    FoundSlots,
    PlacementRequest,
    find_slots,
    has_other_tenants,
    pool_of,
)
from broker.services.queue import batch_placement
from broker.services.queue.batch_placement import RECHECK_AFTER
from broker.services.queue.gpu_reservations import ReservedGpus
from broker.services.volumes import volume_mounts
from ports import outbox

TRIES = 4
RELOADED_FIELDS = ["state", "seq", "state_since", "generation", "version", "max_duration_s", "end_date", "quota_uses"]


def place_lease(lease: Lease, *, now: datetime, reserved: ReservedGpus | None = None) -> bool:
    """Place one queued lease; return False if it stays queued, with a plain reason.

    It gets none of the `reserved` GPUs. The caller goes on with it, or enqueues a message. Two placers may
    decide at once: one that finds a GPU locked takes the next best, and waits for the lock only where there
    is none; PostgreSQL gives the slot to one of them, and the other tries again.
    """
    reserved, locked_elsewhere = reserved or ReservedGpus(), frozenset[str]()
    for _ in range(TRIES):
        request = placement_request(lease)
        requests = abandoned_placements.requests_to_try(lease, request, now=now)
        with current_index() as stock:
            own = _gpus_open_to(lease, stock)  # it waits for promised slots; where they are free, it takes those
            found = _promised_slots(own, lease) or _find_first_slots(
                _excluding(requests, reserved.gpus | locked_elsewhere), stock, own
            )
            waits = found is None and bool(locked_elsewhere)
            if waits:
                found = _find_first_slots(_excluding(requests, reserved.gpus), stock, own)
            if found is None and not own:
                kept_from = _find_first_slots(requests, stock) if reserved.gpus else None
                why = reserved.reason_for(kept_from.gpus) if kept_from else ""
                lease.pending_reason = why or explain_waiting(request, stock, elsewhere=requests != [request])
        if found is None:
            if own:  # its reason says when they become free
                return False
            write_pending_reason([lease.pk], lease.pending_reason)
            return False
        try:
            with transaction.atomic():
                if _reserve_slots(lease, found, now, waits):
                    if own:
                        spot_notices.enqueue_check_of_waiting(lease, now=now)
                    return True
                # It may have locked some of the GPUs: keeping those locks while waiting for others could deadlock.
                transaction.set_rollback(True)
            locked_elsewhere |= frozenset(found.gpus)
        except StaleLease:
            pass  # it ended, was placed, or was extended: its present state decides
        except IntegrityError as error:
            if not batch_placement.is_lost_race(error):
                raise
        lease.refresh_from_db(fields=RELOADED_FIELDS)
        if lease.state != LeaseState.QUEUED:
            return False
    # Another placer was faster every time; there may be room yet, so try again soon.
    outbox.enqueue("broker.run_queue", "|".join(pool_of(lease.offering)), now=now, after_s=1)
    return False


def placement_request(lease: Lease) -> PlacementRequest:
    """Return what a lease requests, in the cluster of its volume if that has one."""
    home = volume_mounts.cluster_name_of(lease.volume_id)
    return PlacementRequest(lease.offering, lease.quantity, lease.same_node, lease.topology, home)


def _excluding(requests: Iterable[PlacementRequest], gpus: frozenset[str]) -> list[PlacementRequest]:
    return [replace(each, not_at=gpus) for each in requests]


def _find_first_slots(
    requests: Iterable[PlacementRequest], stock: GpuIndex, own: Sequence[PlacementGpu] = ()
) -> FoundSlots | None:
    """Return the slots for the first request that fits.

    `own` are the GPUs with slots promised to the lease.
    """
    return next((found for request in requests if (found := find_slots(request, stock, instead=own))), None)


def _gpus_open_to(lease: Lease, stock: GpuIndex) -> list[PlacementGpu]:
    """Return the GPUs with slots promised to a lease, as it sees them."""
    return [stock.gpus[gpu].open_to(lease.pk) for gpu in sorted(stock.promised_to.get(lease.pk, ()))]


def _promised_slots(own: Sequence[PlacementGpu], lease: Lease) -> FoundSlots | None:
    """Return the slots promised to a lease if all of them are free."""
    slots = []
    for gpu in own:
        state = gpu.state
        for placed in gpu.promises_to(lease.pk):
            if not gpu.sellable or not state.fits(placed.profile, placed.placement):
                return None
            state = state.with_held(placed.profile, placed.placement)
            slots.append(Slot(gpu.gpu, placed.placement))
    return FoundSlots(tuple(slots), {gpu.gpu: gpu for gpu in own}) if slots else None


def has_room_elsewhere(lease: Lease) -> bool:
    """Return whether another cluster that has not failed the lease has room now."""
    held = lease.allocations.filter(generation=lease.generation, released_at=None)
    failed = abandoned_placements.abandoned_clusters(lease) | set(
        held.values_list("gpu__node__cluster__name", flat=True)
    )
    with current_index() as stock:
        return find_slots(replace(placement_request(lease), not_in=failed), stock) is not None


def predict_placement(lease: Lease) -> None:
    """Set on the unsaved lease what placing it now would do; write nothing."""
    request = placement_request(lease)
    with current_index() as stock:
        if find_slots(request, stock):
            lease.state = LeaseState.PROVISIONING.value
        else:
            lease.pending_reason = explain_waiting(request, stock)


def _reserve_slots(lease: Lease, found: FoundSlots, now: datetime, waits: bool = False) -> bool:
    """Reserve the slots and start provisioning; return False if a GPU is unavailable.

    A GPU is unavailable when it went out of service, or when another placer has locked it. With `waits`,
    wait for that lock instead.
    """
    offering, generation = lease.offering, lease.generation + 1
    if _has_other_tenants_on_node(found):
        return False
    # Locked in order: a placer waits for another's GPU lock here, where no deadlock is possible.
    wanted = Gpu.objects.sellable().filter(pk__in=found.gpus).order_by("pk")
    mine = wanted.select_for_update(of=("self",), no_key=True, skip_locked=not waits)
    if len(mine.values_list("pk")) < len(found.gpus):
        return False
    Allocation.objects.bulk_create(
        [
            Allocation(
                tenant_id=lease.tenant_id,
                lease=lease,
                generation=generation,
                gpu_id=s.gpu,
                placement=NumericRange(s.placement.start, s.placement.end, "[)"),
                profile=offering.profile,
                isolation=offering.isolation,
                may_share=found.gpus[s.gpu].shares_soft,
                held_at=now,
            )
            for s in found.slots
        ]
    )
    lease.generation = generation
    volume_mounts.assign_cluster(lease, next(iter(found.gpus.values())).cluster)
    lease.transition(
        LeaseState.PROVISIONING,
        now=now,
        cause=describe_placement(found.slots, found.gpus, profile_of(offering)),
        generation=generation,
        claimed_until=None,
        due_at=now + RECHECK_AFTER,
        unfinished_claims=0,
        pending_reason="",
        progress={},
    )
    return True


def _has_other_tenants_on_node(found: FoundSlots) -> bool:
    """Return whether another tenant uses a node that assigns shares itself.

    Our rows have each share on one GPU, but such a node hands out a replica of any. So all its GPUs count as
    one here and are locked together, in order, to keep others from coming.
    """
    shared_nodes = {gpu.node for gpu in found.gpus.values() if gpu.picked_by_node and not gpu.shares_soft}
    for node in sorted(shared_nodes):
        gpus = Gpu.objects.filter(node=node).order_by("pk").select_for_update(of=("self",), no_key=True)
        list(gpus.values_list("pk"))
        if has_other_tenants(node):
            return True
    return False


def write_pending_reason(lease_ids: Sequence[str], reason: str) -> None:
    """Write what queued leases of a tenant wait for, where it changed."""
    queued = Lease.objects.filter(pk__in=lease_ids, state="queued").exclude(pending_reason=reason)
    queued.update(pending_reason=reason, version=F("version") + 1)


def explain_waiting(request: PlacementRequest, stock: GpuIndex, *, elsewhere: bool = False) -> str:
    """Return a sentence on what a request waits for in its region or cluster.

    `elsewhere` says that some clusters or nodes were excluded.
    """
    device = "node" if request.offering.is_cpu_only else "GPU"
    if elsewhere and find_slots(request, stock):
        return f"Waits for another {device}: the assigned one rejected it. It is retried in two minutes."
    label, region = request.offering.label, request.offering.region
    if request.cluster:
        region = f"{request.cluster} (location of its volume)"
    gpus = [
        gpu for gpu in stock.by_pool[request.pool].values() if gpu.sellable and request.cluster in ("", gpu.cluster)
    ]
    if not gpus:
        kind = "CPU node" if request.offering.is_cpu_only else "GPU of this model"
        return f"Waits for {label}: no {kind} is in service in {region} now."
    if not any(_can_be_cut_for(request.offering, gpu) for gpu in gpus):
        if request.offering.is_cpu_only:
            return f"Waits for {label}: no CPU node in {region} is large enough for it now."
        why = "nodes are repartitioned on demand"
        if any(gpu.publishes for gpu in gpus):
            why = "GPUs that are partitioned per lease do not offer it"
        return f"Waits for {label}: no GPU in {region} can be partitioned for it now; {why}."
    if request.quantity == 1:
        return f"Waits for one free {label}. All in {region} are in use; it starts at the next release."
    together = (" on one node" if request.same_node else "") + TOPOLOGY_WORDS[request.topology]
    free = _describe_count(_max_free_together(request, stock))
    return f"Waits for {request.quantity} × {label}, free together{together}. {free} free now."


def _can_be_cut_for(offering: Offering, gpu: PlacementGpu) -> bool:
    return bool(available_placements(profile_of(offering), gpu.cut))


def _describe_count(count: int) -> str:
    return {0: "None is", 1: "One is"}.get(count, f"{count} are")


def _max_free_together(request: PlacementRequest, stock: GpuIndex) -> int:
    """Return how many members of a gang would fit together now."""
    counts = range(request.quantity - 1, 0, -1)
    return next((count for count in counts if find_slots(replace(request, quantity=count), stock)), 0)
