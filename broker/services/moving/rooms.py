"""Room for a lease of the queue: which others make way for it, and where it goes then."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from broker.domain.placement.budgets import Budget
from broker.domain.placement.clearing import clear
from broker.domain.placement.evacuating import Evacuation, evacuate
from broker.domain.placement.fleet import Slice
from broker.domain.placement.gathering import Gathering, gather
from broker.domain.placement.moving import Step
from broker.domain.placement.topology import ASKED
from broker.domain.states import LeaseState
from broker.models import Lease, MovePlan, Offering, Volume
from broker.services.leases.precedence import Shape, Waiting, waiting
from broker.services.moving.pools import Pool
from broker.services.placement.seating import NEAR
from tenants.services.walls import as_staff, as_sweep

WHOLE = 1000
HORIZON_S = 3600  # a card is worth this much of it: programs may not stand still for longer than that
MOST_SHAPES = 32  # of a queue are tried: what nobody can make room for is often all that it holds


@dataclass(frozen=True)
class Room:
    """Where a lease that waits would go, as card, first unit and units, once these steps have been taken."""

    lease_id: str
    asked: str
    seats: tuple[tuple[int, int, int], ...]
    steps: tuple[Step, ...]


def room_for(pool: Pool, *, budget: Budget) -> Room | None:
    """Make room in the pool for whoever has waited longest of those for whom it can be made; None for nobody.

    The pool's fleet is as it would be then, or as it was.
    """
    for entry in islice(_candidates(pool), MOST_SHAPES):
        offering = Offering.objects.get(pk=entry.offering_id)
        number = pool.numbers.get((offering.profile, offering.isolation))
        found = None if number is None else _room(pool, entry, offering, number, budget)
        if found:
            return found
    return None


def is_wanted(plan: MovePlan) -> bool:
    """Tell whether whoever a plan makes room for still waits; one that makes cards whole is always wanted."""
    if not plan.room_for:
        return True
    with as_sweep():
        return Lease.objects.filter(pk=plan.room_for, state=LeaseState.QUEUED.value).exists()


def _candidates(pool: Pool) -> Iterator[Waiting]:
    """Yield who waits in vain, oldest first, the first of each shape; who has a plan elsewhere is left to that."""
    queue = waiting((pool.model, pool.cluster.region))
    others = MovePlan.objects.open().filter(gpu_model=pool.model).exclude(cluster=pool.cluster)
    promised = {plan.room_for for plan in others}
    far = _lies_elsewhere(pool, {entry.volume_id for entry in queue if entry.volume_id})
    seen: set[Shape] = set()
    for entry in queue:
        if not entry.waits_for or entry.lease_id in promised or entry.volume_id in far or entry.shape in seen:
            continue
        seen.add(entry.shape)
        yield entry


def _lies_elsewhere(pool: Pool, volumes: set[str]) -> set[str]:
    if not volumes:
        return set()
    with as_staff():
        rows = Volume.objects.filter(pk__in=volumes).exclude(cluster=None).exclude(cluster=pool.cluster)
        return set(rows.values_list("pk", flat=True))


def _room(pool: Pool, entry: Waiting, offering: Offering, number: int, budget: Budget) -> Room | None:
    fleet, profile = pool.fleet, pool.fleet.table.profiles[number]
    gang = [Slice(f"{entry.lease_id} {member}", number, 0) for member in range(entry.quantity)]
    worth = entry.quantity * profile.memory * WHOLE // fleet.table.grid
    gain, same_node = worth * HORIZON_S // WHOLE, entry.same_node and entry.quantity > 1
    found: Gathering | Evacuation | None
    if profile.memory < fleet.table.grid:
        found = gather(fleet, gang, same_node=same_node, gain=gain, budget=budget)
    elif same_node:
        within = ASKED.get(entry.topology)
        near = None if within is None else pool.near(within)
        found = evacuate(fleet, gang, near=near, opening=True, gain=gain, budget=budget)
    else:
        found = clear(fleet, gang, gain=gain, budget=budget)
    if found is None:
        return None
    seats = tuple((fleet.card[m.allocation], fleet.start[m.allocation], profile.memory) for m in gang)
    if not found.steps:  # it fits as it is, and is placed at the next look at the queue
        for member in gang:
            fleet.lift(member.allocation)
        return None
    return Room(entry.lease_id, _asked(entry, offering), seats, found.steps)


def _asked(entry: Waiting, offering: Offering) -> str:
    if entry.quantity == 1:
        return offering.label
    together = (" on one node" if entry.same_node else "") + NEAR[entry.topology]
    return f"{entry.quantity} × {offering.label} together{together}"
