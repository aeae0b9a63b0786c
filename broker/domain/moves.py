"""A plan of moves and each of its moves: which state may follow which, and what a state means; who is never moved."""

from enum import StrEnum

from broker.domain.states import Isolation


class PlanState(StrEnum):
    PROPOSED = "proposed"  # a dry run: nothing is changed by it
    ACCEPTED = "accepted"  # tenants have been told, and the time they were given runs
    RUNNING = "running"  # one move after the other
    CANCELLING = "cancelling"  # what is under way goes back, the rest does not begin
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"  # not one move of it came to be
    DECLINED = "declined"


class MoveState(StrEnum):
    PLANNED = "planned"
    NOTICED = "noticed"  # its tenant was told when
    MOVING = "moving"  # the new place is held, the lease leaves the old one or starts at the new one
    RETURNING = "returning"  # the new place did not take it: it starts again where it was
    DONE = "done"
    UNDONE = "undone"  # its lease is where it was, or ended by itself
    FAILED = "failed"  # its lease could not even go back


P, M = PlanState, MoveState
NEXT_OF_PLAN: dict[PlanState, frozenset[PlanState]] = {
    P.PROPOSED: frozenset({P.ACCEPTED, P.DECLINED}),
    P.ACCEPTED: frozenset({P.RUNNING, P.CANCELLING, P.FAILED}),
    P.RUNNING: frozenset({P.DONE, P.CANCELLING, P.FAILED}),
    P.CANCELLING: frozenset({P.CANCELLED}),
    P.DONE: frozenset(),
    P.CANCELLED: frozenset(),
    P.FAILED: frozenset(),
    P.DECLINED: frozenset(),
}
NEXT_OF_MOVE: dict[MoveState, frozenset[MoveState]] = {
    M.PLANNED: frozenset({M.NOTICED, M.UNDONE}),
    M.NOTICED: frozenset({M.MOVING, M.UNDONE}),
    M.MOVING: frozenset({M.DONE, M.RETURNING, M.UNDONE, M.FAILED}),
    M.RETURNING: frozenset({M.UNDONE, M.FAILED}),
    M.DONE: frozenset(),
    M.UNDONE: frozenset(),
    M.FAILED: frozenset(),
}
PLAN_OVER = frozenset(state for state, following in NEXT_OF_PLAN.items() if not following)
MOVE_OVER = frozenset(state for state, following in NEXT_OF_MOVE.items() if not following)
AT_WORK = frozenset({P.ACCEPTED, P.RUNNING, P.CANCELLING})  # a worker has something to do
CANCELLABLE = frozenset({P.ACCEPTED, P.RUNNING})
BEGUN = frozenset({M.MOVING, M.RETURNING})
PROMISED = frozenset({M.NOTICED, M.MOVING, M.RETURNING})  # a lease is in one of them at a time


def stays(isolation: Isolation, quantity: int) -> str:
    """Say why a lease of this kind is never moved; empty where it may be. A move knows one walled place of a lease."""
    if quantity > 1:
        return "several that start together stay where they are"
    if isolation not in (Isolation.DEVICE, Isolation.HARDWARE):
        return "a share of a card stays where it is"
    return ""


def end_of(moves: list[MoveState], *, cancelled: bool) -> PlanState:
    """Say how a plan ended all of whose moves are over."""
    if cancelled:
        return P.CANCELLED
    return P.DONE if M.DONE in moves else P.FAILED
