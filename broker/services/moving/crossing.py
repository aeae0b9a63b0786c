"""What a move does to its lease between two cards: on to the new place, home again, or done.

Whoever looks at the lease calls these with what its cluster said, inside the tenant's transaction. Both places are
held until the end: the new one from before the lease leaves the old one, and the old one until the lease is active at
the new one, so that it can always go back.
"""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from broker.domain.moves import BEGUN, MoveState, PlanState
from broker.domain.states import LeaseState
from broker.models import Allocation, Gpu, Lease, Move, StaleLease
from broker.services.moving.records import turn_move
from ports import doorbell

LOOK_AGAIN = timedelta(seconds=10)
SOON_S = 2.0
# What the lease's ledger says, which its tenant reads. Why an operator did it is their own affair, and in the plan.
CALLED_OFF = "the move was called off by an operator"
S, M = LeaseState, MoveState


def begun(lease: Lease) -> Move | None:
    """Return the move that a lease is in the middle of. A lease that must not be moved is in none."""
    if not lease.movable:
        return None
    states = [state.value for state in BEGUN]
    return Move.objects.select_related("plan").filter(lease=lease, state__in=states).first()


def _kept_still(lease: Lease) -> Move | None:
    """Return the same, with nobody else changing the lease or its move until this transaction is over.

    Whoever is too late must know before anything is written: what is caught as StaleLease is not undone.
    """
    if not lease.movable:
        return None
    as_loaded = Lease.objects.filter(
        pk=lease.pk, state=lease.state, seq=lease.seq, max_duration_s=lease.max_duration_s
    )
    if not as_loaded.select_for_update(of=("self",), no_key=True).values_list("pk"):
        raise StaleLease(lease.pk)
    return begun(lease)


def cross(lease: Lease, *, now: datetime) -> bool:
    """Let a lease whose old place is proven empty start at the one held for it; False where none is."""
    move = _kept_still(lease)
    if move is None:
        return False
    if move.plan.state == PlanState.CANCELLING or not _is_in_service(beside(lease)):
        why = "the card it was to go to is no longer in service"
        free_beside(lease, now=now)
        cancelled = move.plan.state == PlanState.CANCELLING
        _return(lease, move, why=CALLED_OFF if cancelled else why, now=now)
        return True
    _here(lease).update(for_move=True)
    _leave(lease, cause="moved: nothing of it is left at its old place", now=now)
    return True


def cross_unproven(lease: Lease, *, now: datetime) -> bool:
    """Let a lease whose old node is lost start at the place held for it; False where there is none to go to.

    Its old place stays taken until that node proves that nothing of the lease is left there.
    """
    move = _kept_still(lease)
    if move is None or not _is_in_service(beside(lease)):
        return False
    _here(lease).update(leaving_since=now)
    _leave(lease, cause="moved: the node of its old place is lost", now=now)
    doorbell.ring("broker.leave", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=SOON_S)
    return True


def _here(lease: Lease) -> QuerySet[Allocation]:
    return Allocation.objects.filter(lease=lease, generation=lease.generation, released_at=None)


def _is_in_service(places: QuerySet[Allocation]) -> bool:
    return Gpu.objects.sellable().filter(pk__in=places.values("gpu")).exists()


def _leave(lease: Lease, *, cause: str, now: datetime) -> None:
    beside(lease).exclude(generation=lease.generation).update(for_move=False)
    lease.move(S.STOPPED, S.QUEUED, now=now, cause=cause)
    _start(lease, cause="moved to the place that was held for it", now=now)


def go_back(lease: Lease, *, why: str, now: datetime) -> bool:
    """Start a lease where it was that its new place does not take; False where it cannot, or is not on its way."""
    move = _kept_still(lease)
    if move is None or move.state != M.MOVING or not beside(lease).exists():
        return False
    _here(lease).update(
        leaving_since=now
    )  # taken until its cluster proves that nothing of the lease is there
    lease.move(S.QUEUED, now=now, cause=why)
    _return(lease, move, why=why, now=now)
    doorbell.ring("broker.leave", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=SOON_S)
    return True


def _return(lease: Lease, move: Move, *, why: str, now: datetime) -> None:
    """Place a lease where it was, as a generation of its own: what ran there before is not what runs there now."""
    if lease.state == S.STOPPING:
        home = _here(lease).get()
        lease.move(S.STOPPED, S.QUEUED, now=now, cause="not moved: it goes back")
    else:
        home = beside(lease).get()
    Allocation.objects.filter(pk=home.pk).update(released_at=now, for_move=False)
    Allocation.objects.create(
        tenant_id=lease.tenant_id,
        lease=lease,
        generation=lease.generation + 1,
        gpu_id=home.gpu_id,
        placement=home.placement,
        profile=home.profile,
        isolation=home.isolation,
        may_share=home.may_share,
        held_at=now,
    )
    _start(lease, cause="back where it was", now=now)
    turn_move(move, M.RETURNING, why=why, now=now)


def _start(lease: Lease, *, cause: str, now: datetime) -> None:
    lease.generation += 1
    lease.move(
        S.PROVISIONING,
        now=now,
        cause=cause,
        generation=lease.generation,
        claimed_until=None,
        due_at=now + LOOK_AGAIN,
        tries=0,
        conditions={},
        progress={},
    )
    doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now)


def land(lease: Lease, *, now: datetime) -> None:
    """Free what is held beside a lease that has just become active, and close its move."""
    move = begun(lease)
    if move is None:
        return
    # Not a second later: from then on it is charged, and for one place.
    free_beside(lease, now=now, at=lease.at)
    if move.state == M.MOVING:
        turn_move(move, M.DONE, why="active at its new place", now=now)
    else:
        turn_move(move, M.UNDONE, why=move.why, now=now)
    doorbell.ring("broker.move", move.plan_id, now=now)


def call_off(lease: Lease, *, why: str, now: datetime) -> None:
    """Let a lease stay stopped that its tenant stops while it is being moved; raises StaleLease if it went on."""
    move = _kept_still(lease)
    if move and lease.state == S.STOPPING:
        turn_move(move, M.UNDONE, why=why, now=now)
        free_beside(lease, now=now)


def free_beside(lease: Lease, *, now: datetime, at: datetime | None = None) -> None:
    """Free what is held for a lease's move beside its place, and let who waits for one have it."""
    if beside(lease).update(released_at=at or now, for_move=False):
        pool = f"{lease.offering.gpu_model_id}|{lease.offering.region}"
        doorbell.ring("broker.serve", pool, now=now)


def beside(lease: Lease) -> QuerySet[Allocation]:
    """Return the places held for a lease's move beside the one it is at. Nothing of it is there."""
    return Allocation.objects.filter(lease=lease, for_move=True, released_at=None)
