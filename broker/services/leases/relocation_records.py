"""State changes of relocation plans and relocations, each with its history entry."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.domain.lifecycle.relocation_states import (
    NEXT_PLAN_STATES,
    NEXT_RELOCATION_STATES,
    RelocationPlanState,
    RelocationState,
)
from broker.models import Relocation, RelocationLogEntry, RelocationPlan
from tenants.services.rls import staff_scope

MAX_REASON_LENGTH = 200


@transaction.atomic
def set_plan_state(
    plan: RelocationPlan,
    state: RelocationPlanState,
    *,
    why: str,
    now: datetime,
    actor_label: str = "",
    **changes: object,
) -> bool:
    """Change a plan's state; return False if another worker was faster."""
    if state not in NEXT_PLAN_STATES[RelocationPlanState(plan.state)]:
        raise ValueError(f"a plan that is {plan.state} cannot become {state}")
    unchanged = RelocationPlan.objects.filter(pk=plan.pk, state=plan.state)
    values = {"state": state.value, "state_at": now, "why": why[:MAX_REASON_LENGTH], "claimed_until": None, **changes}
    if not unchanged.update(**values):
        return False
    append_log_entry(plan.pk, state.value, why=why, now=now, actor_label=actor_label)
    plan.refresh_from_db()
    return True


def set_relocation_state(
    move: Relocation, state: RelocationState, *, why: str, now: datetime, **changes: object
) -> bool:
    """Change a relocation's state, inside its tenant's transaction.

    Returns False if another worker was faster.
    """
    if state not in NEXT_RELOCATION_STATES[RelocationState(move.state)]:
        raise ValueError(f"a move that is {move.state} cannot become {state}")
    unchanged = Relocation.objects.filter(pk=move.pk, state=move.state)
    if not unchanged.update(state=state.value, state_at=now, why=why[:MAX_REASON_LENGTH], **changes):
        return False
    append_log_entry(move.plan_id, state.value, n=move.n, why=why, now=now)
    move.refresh_from_db()
    return True


def append_log_entry(
    plan_id: str, state: str, *, why: str, now: datetime, n: int | None = None, actor_label: str = ""
) -> None:
    """Append a history entry; the plan's row is locked, so numbers have no gaps."""
    RelocationPlan.objects.filter(pk=plan_id).update(seq=F("seq") + 1)
    seq = RelocationPlan.objects.values_list("seq", flat=True).get(pk=plan_id)
    RelocationLogEntry.objects.create(
        plan_id=plan_id, seq=seq, n=n, state=state, at=now, why=why[:MAX_REASON_LENGTH], actor_label=actor_label
    )


def relocations_of(plan: RelocationPlan) -> Sequence[Relocation]:
    """Return a plan's relocations in order, of all tenants."""
    with staff_scope():
        return list(Relocation.objects.filter(plan=plan).order_by("n"))
