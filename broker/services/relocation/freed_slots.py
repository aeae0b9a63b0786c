"""Room for a queued lease: which leases to relocate, and where it then goes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from broker.domain.defragmentation.evacuation import WholeGpuPlacement, evacuate_node
from broker.domain.defragmentation.fleet import LiveSlice
from broker.domain.defragmentation.gang_room import GangPlacement, make_room_for_gang
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import SliceRelocation
from broker.domain.defragmentation.whole_gpus import place_whole_gpus
from broker.domain.lifecycle.states import LeaseState
from broker.domain.placement.gangs.topology import LINK_LIMITS
from broker.models import Lease, Offering, RelocationPlan, Volume
from broker.services.placement.slot_search import TOPOLOGY_WORDS
from broker.services.queue.starvation_guard import QueuedLease, RequestShape, load_queue
from broker.services.relocation.relocation_pools import RelocationPool
from tenants.services.rls import staff_scope, system_scope

MILLI_PER_GPU = 1000
GPU_WORTH_S = 3600  # a GPU is worth this many seconds: the most downtime that one emptied GPU justifies
MAX_SHAPES = 32  # of a queue that are tried: often it holds only leases nobody can make room for


@dataclass(frozen=True)
class FreedSlots:
    """Slots of a queued lease as (GPU, first unit, units), free after these steps."""

    lease_id: str
    requested: str
    slots: tuple[tuple[int, int, int], ...]
    steps: tuple[SliceRelocation, ...]


def find_freed_slots(pool: RelocationPool, *, budget: RelocationBudget, now: datetime) -> FreedSlots | None:
    """Return room for the longest-waiting lease it can be made for; else None.

    The pool's fleet is left as it would be then, or as it was.
    """
    for entry in islice(_candidates(pool, now), MAX_SHAPES):
        offering = Offering.objects.get(pk=entry.offering_id)
        number = pool.numbers.get((offering.profile, offering.isolation))
        found = None if number is None else _free_slots_for(pool, entry, offering, number, budget)
        if found:
            return found
    return None


def is_still_needed(plan: RelocationPlan) -> bool:
    """Return whether the lease a plan makes room for still waits.

    A plan that makes GPUs whole is always wanted.
    """
    if not plan.room_for:
        return True
    with system_scope():
        return Lease.objects.filter(pk=plan.room_for, state=LeaseState.QUEUED.value).exists()


def _candidates(pool: RelocationPool, now: datetime) -> Iterator[QueuedLease]:
    """Yield leases that wait in vain, oldest first, one for each shape.

    Those with an open plan in another cluster are left out.
    """
    queue = load_queue((pool.model, pool.cluster.region), now=now)
    others = RelocationPlan.objects.open().filter(gpu_model=pool.model).exclude(cluster=pool.cluster)
    promised = {plan.room_for for plan in others}
    far = _volumes_elsewhere(pool, {entry.volume_id for entry in queue if entry.volume_id})
    tried: set[RequestShape] = set()
    for entry in queue:
        if not entry.pending_reason or entry.lease_id in promised or entry.volume_id in far or entry.shape in tried:
            continue
        tried.add(entry.shape)
        yield entry


def _volumes_elsewhere(pool: RelocationPool, volumes: set[str]) -> set[str]:
    if not volumes:
        return set()
    with staff_scope():
        rows = Volume.objects.filter(pk__in=volumes).exclude(cluster=None).exclude(cluster=pool.cluster)
        return set(rows.values_list("pk", flat=True))


def _free_slots_for(
    pool: RelocationPool, entry: QueuedLease, offering: Offering, number: int, budget: RelocationBudget
) -> FreedSlots | None:
    fleet, profile = pool.fleet, pool.fleet.table.profiles[number]
    gang = [LiveSlice(f"{entry.lease_id} {member}", number, 0) for member in range(entry.quantity)]
    worth = entry.quantity * profile.memory * MILLI_PER_GPU // fleet.table.grid
    gain, same_node = worth * GPU_WORTH_S // MILLI_PER_GPU, entry.same_node and entry.quantity > 1
    found: GangPlacement | WholeGpuPlacement | None
    if profile.memory < fleet.table.grid:
        found = make_room_for_gang(fleet, gang, same_node=same_node, gain=gain, budget=budget)
    elif same_node:
        within = LINK_LIMITS.get(entry.topology)
        near = None if within is None else pool.link_check(within)
        found = evacuate_node(fleet, gang, are_near=near, use_empty_gpus=True, gain=gain, budget=budget)
    else:
        found = place_whole_gpus(fleet, gang, gain=gain, budget=budget)
    if found is None:
        return None
    slots = tuple((fleet.gpu_of[m.allocation], fleet.start_of[m.allocation], profile.memory) for m in gang)
    if not found.steps:  # it fits already, and is placed by the next queue run
        for member in gang:
            fleet.remove(member.allocation)
        return None
    return FreedSlots(entry.lease_id, _describe_request(entry, offering), slots, found.steps)


def _describe_request(entry: QueuedLease, offering: Offering) -> str:
    if entry.quantity == 1:
        return offering.label
    together = (" on one node" if entry.same_node else "") + TOPOLOGY_WORDS[entry.topology]
    return f"{entry.quantity} × {offering.label} together{together}"
