"""Choice of the leases to relocate, with cost and gain.

Relocations make room for a waiting lease, or empty GPUs so that they can be sold whole.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from broker.domain.defragmentation.defragmentation_plan import plan_defragmentation
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import SliceRelocation, apply_relocation
from broker.domain.lifecycle.relocation_states import RelocationState
from broker.models import Relocation
from broker.services.relocation.freed_slots import GPU_WORTH_S, MILLI_PER_GPU, FreedSlots, find_freed_slots
from broker.services.relocation.relocation_pools import RelocationPool
from tenants.services.rls import staff_scope

MAX_RELOCATIONS = 12  # in one plan: as many as an operator will review
MAX_PER_TENANT_AND_DAY = 24  # of one tenant's leases, by all plans together
DAY = timedelta(days=1)


@dataclass(frozen=True)
class RelocationChoice:
    """Relocation steps in order.

    Each costs seconds; the step that completes a slot or empties a GPU carries the gain.
    """

    steps: tuple[SliceRelocation, ...]
    emptied: int
    freed_slots: FreedSlots | None = None  # the queued lease it is for, if any

    @property
    def cost_s(self) -> int:
        return sum(step.cost for step in self.steps)

    @property
    def gain_milli(self) -> int:
        return sum(gain_milli_of(step) for step in self.steps)

    @property
    def reason(self) -> str:
        """Return a sentence on what is gained."""
        if self.freed_slots:
            return f"Frees {self.freed_slots.requested} for a queued lease."
        if self.emptied == 1:
            return "One GPU with few slices can be emptied and then sold whole."
        return f"{self.emptied} GPUs with few slices can be emptied and then sold whole."


def choose_relocations(pool: RelocationPool, *, now: datetime, most: int = MAX_RELOCATIONS) -> RelocationChoice:
    """Choose relocations for the longest-waiting lease they can help, else to empty GPUs.

    GPUs are emptied while that pays. The pool's fleet is left as it would be after the relocations.
    """
    budget = RelocationBudget(most, per_tenant=MAX_PER_TENANT_AND_DAY, spent=_recent_by_tenant(now))
    if room := find_freed_slots(pool, budget=budget, now=now):
        return RelocationChoice(room.steps, 0, room)
    plan = plan_defragmentation(pool.fleet, gain=GPU_WORTH_S, budget=budget)
    for step in plan.steps:
        apply_relocation(pool.fleet, step)
    return RelocationChoice(plan.steps, plan.gpus_before - plan.gpus_after)


def _recent_by_tenant(now: datetime) -> dict[str, int]:
    """Return by tenant how many of its leases were relocated within a day."""
    with staff_scope():
        moved = Relocation.objects.filter(state=RelocationState.DONE.value, state_at__gt=now - DAY)
        rows = moved.values("tenant_id").annotate(count=Count("id")).order_by("tenant_id")
        return {row["tenant_id"]: row["count"] for row in rows}


def gain_milli_of(step: SliceRelocation) -> int:
    """Return what a step gains in thousandths of a GPU."""
    return step.gain * MILLI_PER_GPU // GPU_WORTH_S
