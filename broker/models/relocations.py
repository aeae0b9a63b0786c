"""Relocation plans and their relocations; the rows store what is next, so workers may crash."""

from django.db import models
from django.db.models import Q

from broker.domain.lifecycle.relocation_states import (
    FINAL_PLAN_STATES,
    FINAL_RELOCATION_STATES,
    PENDING_RELOCATION_STATES,
    WORKING_PLAN_STATES,
    RelocationPlanState,
    RelocationState,
)
from broker.models.inventory import Cluster, Gpu, GpuModel
from broker.models.keys import ID_LENGTH, relocation_id, relocation_plan_id
from broker.models.leases import Lease
from tenants.models.tenants import TenantOwned

FINAL_PLAN_STATE_VALUES = sorted(state.value for state in FINAL_PLAN_STATES)


class RelocationPlanQuerySet(models.QuerySet["RelocationPlan"]):
    def at_work(self) -> "RelocationPlanQuerySet":
        """Return accepted, unfinished plans: those with work for a worker."""
        return self.filter(state__in=[state.value for state in WORKING_PLAN_STATES])

    def open(self) -> "RelocationPlanQuerySet":
        return self.exclude(state__in=FINAL_PLAN_STATE_VALUES)

    def making_room(self, model: str, region: str) -> dict[str, frozenset[str]]:
        """Return the leases that running plans of a pool make room for, with their GPUs."""
        running = self.filter(state=RelocationPlanState.RUNNING.value, gpu_model=model, cluster__region=region)
        return {plan.room_for: frozenset(str(gpu["gpu"]) for gpu in plan.gpus) for plan in running if plan.room_for}


class RelocationPlan(models.Model):
    """A proposal to relocate some leases within one cluster, with its cost and gain.

    Nothing changes until an operator accepts it.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=relocation_plan_id)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="move_plans")
    gpu_model = models.ForeignKey(GpuModel, on_delete=models.PROTECT, db_index=False, related_name="+")
    reason = models.CharField(max_length=300)  # why it is proposed, in one sentence
    cost_s = models.PositiveIntegerField()  # total downtime of the programs
    gain_milli = models.IntegerField()  # in thousandths of a GPU that can be sold whole again
    # The GPUs before and after: [{"gpu", "name", "grid", "before": [[start, size, kind]], "after"}]; kind 1 is
    # relocated, kind 2 is the future slot of a queued lease, whose id is "for" on its GPUs.
    gpus = models.JSONField()
    state = models.CharField(max_length=12, default=RelocationPlanState.PROPOSED.value)
    state_at = models.DateTimeField()
    seq = models.PositiveIntegerField(default=0)  # rises with every entry, to detect stale writers
    why = models.CharField(max_length=200, blank=True, default="")
    proposed_at = models.DateTimeField()
    not_before = models.DateTimeField(null=True)  # the earliest start, as announced to tenants
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)

    objects = RelocationPlanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "gpu_model"],
                condition=~Q(state__in=FINAL_PLAN_STATE_VALUES),
                name="one_open_plan_per_pool",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in RelocationPlanState]), name="move_plan_state_known"
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], name="move_plan_due", condition=~Q(state__in=FINAL_PLAN_STATE_VALUES))
        ]

    def __str__(self) -> str:
        return f"{self.gpu_model_id} of {self.cluster}"

    @property
    def is_over(self) -> bool:
        return RelocationPlanState(self.state) in FINAL_PLAN_STATES

    @property
    def room_for(self) -> str:
        """Return the queued lease the plan makes room for.

        Empty where the plan only empties GPUs so that they can be sold whole.
        """
        return next((str(gpu["for"]) for gpu in self.gpus if gpu.get("for")), "")

    @property
    def version(self) -> int:
        """Return the number that its ETag is made of."""
        return self.seq


class Relocation(TenantOwned):
    """The relocation of one lease to another GPU.

    The row belongs to the tenant; the plan belongs to the operator.
    """

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=relocation_id)
    plan = models.ForeignKey(RelocationPlan, on_delete=models.PROTECT, related_name="moves", db_index=False)
    n = models.PositiveIntegerField()  # its number in the plan's order
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="moves")
    profile = models.CharField(max_length=30)
    size = models.PositiveSmallIntegerField()
    from_gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, db_index=False, related_name="+")
    from_start = models.PositiveSmallIntegerField()
    to_gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, db_index=False, related_name="+")
    to_start = models.PositiveSmallIntegerField()
    cost_s = models.PositiveIntegerField()
    gain_milli = models.IntegerField()
    state = models.CharField(max_length=12, default=RelocationState.PLANNED.value)
    state_at = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True, default="")
    not_before = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "plan", "n"], name="move_has_its_turn"),
            models.UniqueConstraint(
                fields=["tenant", "lease"],
                condition=Q(state__in=sorted(state.value for state in PENDING_RELOCATION_STATES)),
                name="one_open_move_per_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in RelocationState]), name="move_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lease_id} from {self.from_gpu_id} to {self.to_gpu_id}"

    @property
    def is_over(self) -> bool:
        return RelocationState(self.state) in FINAL_RELOCATION_STATES


class RelocationLogEntry(models.Model):
    """Append-only record of a state change of a plan or of one of its relocations.

    It says when, why, and by whom if a person did it.
    """

    plan = models.ForeignKey(RelocationPlan, on_delete=models.PROTECT, related_name="entries", db_index=False)
    seq = models.PositiveIntegerField()
    n = models.PositiveIntegerField(null=True)  # of the relocation; null for the plan itself
    state = models.CharField(max_length=12)
    at = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "seq"], name="move_entry_once")]

    def __str__(self) -> str:
        return f"{self.plan_id}#{self.seq} {self.state}"
