"""Steps of a relocation on its lease: start at the target, go back, or finish.

The reconciler of leases calls these with what the cluster answered, inside the tenant's transaction.
Both placements are held until the end: the target from before the lease leaves the source, and the
source until the lease is active at the target, so that it can always go back.
"""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from broker.domain.lifecycle.relocation_states import STARTED_RELOCATION_STATES, RelocationPlanState, RelocationState
from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Gpu, Lease, Relocation, StaleLease
from broker.services.leases.relocation_records import set_relocation_state
from ports import outbox

RECHECK_AFTER = timedelta(seconds=10)
SOON_S = 2.0
# The tenant reads this in the lease's ledger. The operator's own reason is kept in the plan.
CANCELLED_BY_OPERATOR = "the move was cancelled by an operator"
S, M = LeaseState, RelocationState


def started_relocation(lease: Lease) -> Relocation | None:
    """Return the relocation that a lease is in the middle of.

    None for a lease that must not be relocated.
    """
    if not lease.relocatable:
        return None
    states = [state.value for state in STARTED_RELOCATION_STATES]
    return Relocation.objects.select_related("plan").filter(lease=lease, state__in=states).first()


def _lock_relocation(lease: Lease) -> Relocation | None:
    """Return the same, with lease and relocation locked for this transaction.

    A writer that is too late must know before anything is written: a caught StaleLease undoes nothing.
    """
    if not lease.relocatable:
        return None
    as_loaded = Lease.objects.filter(pk=lease.pk, state=lease.state, seq=lease.seq, max_duration_s=lease.max_duration_s)
    if not as_loaded.select_for_update(of=("self",), no_key=True).values_list("pk"):
        raise StaleLease(lease.pk)
    return started_relocation(lease)


def start_at_target(lease: Lease, *, now: datetime) -> bool:
    """Start a lease at its target once its source is proven empty.

    Returns False where there is no relocation.
    """
    move = _lock_relocation(lease)
    if move is None:
        return False
    if move.plan.state == RelocationPlanState.CANCELLING or not _is_in_service(other_placements(lease)):
        why = "the target GPU is out of service"
        free_other_placement(lease, now=now)
        cancelled = move.plan.state == RelocationPlanState.CANCELLING
        _place_at_source(lease, move, why=CANCELLED_BY_OPERATOR if cancelled else why, now=now)
        return True
    _current_placements(lease).update(is_relocation=True)
    _leave_source(lease, cause="moved: its old slice is empty", now=now)
    return True


def start_at_target_unproven(lease: Lease, *, now: datetime) -> bool:
    """Start a lease at its target although its source node is lost.

    Returns False where there is no target. The source stays held until its node proves that nothing of the
    lease is left there.
    """
    move = _lock_relocation(lease)
    if move is None or not _is_in_service(other_placements(lease)):
        return False
    _current_placements(lease).update(leaving_since=now)
    _leave_source(lease, cause="moved: the node of its old slice is lost", now=now)
    outbox.enqueue("broker.free_abandoned_placements", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=SOON_S)
    return True


def _current_placements(lease: Lease) -> QuerySet[Allocation]:
    return Allocation.objects.filter(lease=lease, generation=lease.generation, released_at=None)


def _is_in_service(places: QuerySet[Allocation]) -> bool:
    return Gpu.objects.sellable().filter(pk__in=places.values("gpu")).exists()


def _leave_source(lease: Lease, *, cause: str, now: datetime) -> None:
    other_placements(lease).exclude(generation=lease.generation).update(is_relocation=False)
    lease.transition(S.STOPPED, S.QUEUED, now=now, cause=cause)
    _start_provisioning(lease, cause="moved to its reserved slice", now=now)


def return_to_source(lease: Lease, *, why: str, now: datetime) -> bool:
    """Start a lease at its source again when the target did not take it.

    Returns False where it cannot, or is not being relocated.
    """
    move = _lock_relocation(lease)
    if move is None or move.state != M.MOVING or not other_placements(lease).exists():
        return False
    _current_placements(lease).update(
        leaving_since=now
    )  # held until its cluster proves that nothing of the lease is there
    lease.transition(S.QUEUED, now=now, cause=why)
    _place_at_source(lease, move, why=why, now=now)
    outbox.enqueue("broker.free_abandoned_placements", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=SOON_S)
    return True


def _place_at_source(lease: Lease, move: Relocation, *, why: str, now: datetime) -> None:
    """Place a lease at its source again, as a new generation.

    What ran there before is not what runs there now.
    """
    if lease.state == S.STOPPING:
        home = _current_placements(lease).get()
        lease.transition(S.STOPPED, S.QUEUED, now=now, cause="not moved: it returns to its old slice")
    else:
        home = other_placements(lease).get()
    Allocation.objects.filter(pk=home.pk).update(released_at=now, is_relocation=False)
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
    _start_provisioning(lease, cause="back on its old slice", now=now)
    set_relocation_state(move, M.RETURNING, why=why, now=now)


def _start_provisioning(lease: Lease, *, cause: str, now: datetime) -> None:
    lease.generation += 1
    lease.transition(
        S.PROVISIONING,
        now=now,
        cause=cause,
        generation=lease.generation,
        claimed_until=None,
        due_at=now + RECHECK_AFTER,
        unfinished_claims=0,
        conditions={},
        progress={},
    )
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)


def finish_relocation(lease: Lease, *, now: datetime) -> None:
    """Finish a lease's relocation once it is active, and free the other placement."""
    move = started_relocation(lease)
    if move is None:
        return
    # At the same second: from then on it is charged, and for one placement only.
    free_other_placement(lease, now=now, at=lease.state_since)
    if move.state == M.MOVING:
        set_relocation_state(move, M.DONE, why="active on its new slice", now=now)
    else:
        set_relocation_state(move, M.UNDONE, why=move.why, now=now)
    outbox.enqueue("broker.reconcile_relocation_plan", move.plan_id, now=now)


def cancel_relocation(lease: Lease, *, why: str, now: datetime) -> None:
    """Cancel the relocation of a lease that its tenant stops meanwhile.

    Raises StaleLease if the lease went on.
    """
    move = _lock_relocation(lease)
    if move and lease.state == S.STOPPING:
        set_relocation_state(move, M.UNDONE, why=why, now=now)
        free_other_placement(lease, now=now)


def free_other_placement(lease: Lease, *, now: datetime, at: datetime | None = None) -> None:
    """Free the placement held for a lease's relocation, and wake the queue."""
    if other_placements(lease).update(released_at=at or now, is_relocation=False):
        pool = f"{lease.offering.gpu_model_id}|{lease.offering.region}"
        outbox.enqueue("broker.run_queue", pool, now=now)


def other_placements(lease: Lease) -> QuerySet[Allocation]:
    """Return the placements held for the lease's relocation, where nothing of it runs."""
    return Allocation.objects.filter(lease=lease, is_relocation=True, released_at=None)
