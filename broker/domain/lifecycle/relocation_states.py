"""States of relocation plans and relocations, with their transitions.

Also which leases are never relocated.
"""

from enum import StrEnum

from broker.domain.lifecycle.states import Isolation


class RelocationPlanState(StrEnum):
    PROPOSED = "proposed"  # a dry run: nothing is changed by it
    ACCEPTED = "accepted"  # tenants were notified, and the notice period runs
    RUNNING = "running"  # relocations are made one after the other
    CANCELLING = "cancelling"  # started relocations are reverted, the others do not start
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"  # no relocation succeeded
    DECLINED = "declined"


class RelocationState(StrEnum):
    PLANNED = "planned"
    NOTICED = "noticed"  # its tenant was notified of the time
    MOVING = "moving"  # the new slot is held; the lease stops on the old GPU or starts on the new one
    RETURNING = "returning"  # it could not start on the new GPU and starts again on the old one
    DONE = "done"
    UNDONE = "undone"  # its lease is on the old GPU, or ended by itself
    FAILED = "failed"  # its lease could not return to the old GPU either


P, M = RelocationPlanState, RelocationState
NEXT_PLAN_STATES: dict[RelocationPlanState, frozenset[RelocationPlanState]] = {
    P.PROPOSED: frozenset({P.ACCEPTED, P.DECLINED}),
    P.ACCEPTED: frozenset({P.RUNNING, P.CANCELLING, P.FAILED}),
    P.RUNNING: frozenset({P.DONE, P.CANCELLING, P.FAILED}),
    P.CANCELLING: frozenset({P.CANCELLED}),
    P.DONE: frozenset(),
    P.CANCELLED: frozenset(),
    P.FAILED: frozenset(),
    P.DECLINED: frozenset(),
}
NEXT_RELOCATION_STATES: dict[RelocationState, frozenset[RelocationState]] = {
    M.PLANNED: frozenset({M.NOTICED, M.UNDONE}),
    M.NOTICED: frozenset({M.MOVING, M.UNDONE}),
    M.MOVING: frozenset({M.DONE, M.RETURNING, M.UNDONE, M.FAILED}),
    M.RETURNING: frozenset({M.UNDONE, M.FAILED}),
    M.DONE: frozenset(),
    M.UNDONE: frozenset(),
    M.FAILED: frozenset(),
}
FINAL_PLAN_STATES = frozenset(state for state, following in NEXT_PLAN_STATES.items() if not following)
FINAL_RELOCATION_STATES = frozenset(state for state, following in NEXT_RELOCATION_STATES.items() if not following)
WORKING_PLAN_STATES = frozenset({P.ACCEPTED, P.RUNNING, P.CANCELLING})  # a worker must process the plan
CANCELLABLE_PLAN_STATES = frozenset({P.ACCEPTED, P.RUNNING})
STARTED_RELOCATION_STATES = frozenset({M.MOVING, M.RETURNING})
# A lease has at most one relocation in these states.
PENDING_RELOCATION_STATES = frozenset({M.NOTICED, M.MOVING, M.RETURNING})


def why_not_relocatable(isolation: Isolation, quantity: int, *, has_gpu: bool = True) -> str:
    """Return why a lease of this kind is never relocated; empty if it may be.

    A relocation handles one slice of a GPU with hardware or device isolation.
    """
    if not has_gpu:
        return "not available without a GPU"
    if quantity > 1:
        return "not available for quantity > 1"
    if isolation not in (Isolation.DEVICE, Isolation.HARDWARE):
        return "not available for shared GPUs"
    return ""


def final_plan_state(moves: list[RelocationState], *, cancelled: bool) -> RelocationPlanState:
    """Return the final state of a plan whose relocations are all over."""
    if cancelled:
        return P.CANCELLED
    return P.DONE if M.DONE in moves else P.FAILED
