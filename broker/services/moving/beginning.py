"""Telling a tenant that a lease will be moved, and beginning to."""

from datetime import datetime

from django.db import IntegrityError, transaction

from broker.domain.moves import MoveState, PlanState
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease, Move, MovePlan, StaleLease
from broker.services.leases import stopping
from broker.services.leases.bursts import was_faster
from broker.services.moving import telling
from broker.services.moving.holding import hold, why_not
from broker.services.moving.records import turn_move, turn_plan
from tenants.services.actors import SYSTEM
from tenants.services.walls import as_tenant

M = MoveState


def notice(move: Move, *, at: datetime, now: datetime) -> None:
    """Promise a lease's tenant that it is moved, and not before a moment; or leave it where it is."""
    with as_tenant(move.tenant_id):
        lease = _locked(move)
        if why := _promised(move) or why_not(lease, move, now=now):
            turn_move(move, M.UNDONE, why=why, now=now)
            return
        day = "" if at.date() == now.date() else f" on {at.day} {at:%B}"
        told = f"will be moved to another card, not before {at:%H:%M} UTC{day}"
        # In the ledger, from where every event goes out. Not later than it was last seen: what comes after that
        # is not certain to be charged.
        lease.move(LeaseState.ACTIVE, now=lease.seen_at or lease.at, cause=told)
        turn_move(move, M.NOTICED, why=told, now=now, not_before=at)
        if at > now:
            telling.write(lease, told=told, cost_s=move.cost_s)


def _promised(move: Move) -> str:
    """Say so where another move of the lease is open: PostgreSQL lets it have but one."""
    states = [M.NOTICED.value, M.MOVING.value, M.RETURNING.value]
    others = Move.objects.filter(lease_id=move.lease_id, state__in=states)
    return "it is being moved already" if others.exists() else ""


def begin(move: Move, *, now: datetime) -> bool:
    """Hold the next place and have the lease leave its own; False where it stays, or where somebody was faster."""
    with as_tenant(move.tenant_id):
        # Before the lease is: whoever calls a plan off does it in this order.
        plan = MovePlan.objects.select_for_update(of=("self",)).at_work().filter(pk=move.plan_id).first()
        if plan is None or plan.state == PlanState.CANCELLING:
            return False
        lease = _locked(move)
        if why := why_not(lease, move, now=now):
            turn_move(move, M.UNDONE, why=why, now=now)
            return False
        try:
            with transaction.atomic():
                if not hold(lease, move, now=now):
                    raise StaleLease(lease.pk)
                cause = "moved to another card by its tenant's leave"
                stopping.pause(lease, reason=EndReason.BY_OPERATOR, cause=cause, actor=SYSTEM, now=now)
        except StaleLease:
            return False  # what it is now decides, at the next look
        except IntegrityError as error:
            if not was_faster(error):
                raise
            turn_move(move, M.UNDONE, why="the place it was to go to was taken meanwhile", now=now)
            return False
        if plan.state == PlanState.ACCEPTED:
            turn_plan(plan, PlanState.RUNNING, why="the first move has begun", now=now)
        return turn_move(move, M.MOVING, why="leaves its place", now=now)


def _locked(move: Move) -> Lease:
    rows = Lease.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("offering", "project", "volume").get(pk=move.lease_id)
