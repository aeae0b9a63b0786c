"""Plans of moves, kept step by step: whatever dies meanwhile, the rows say what is next."""

from django.db import models
from django.db.models import Q

from broker.domain.moves import AT_WORK, MOVE_OVER, PLAN_OVER, PROMISED, MoveState, PlanState
from broker.models.inventory import Cluster, Gpu, GpuModel
from broker.models.keys import ID_LENGTH, move_id, move_plan_id
from broker.models.leases import Lease
from tenants.models.tenants import TenantOwned

OVER = sorted(state.value for state in PLAN_OVER)


class MovePlanQuerySet(models.QuerySet["MovePlan"]):
    def at_work(self) -> "MovePlanQuerySet":
        """Accepted and not over: a worker has something to do."""
        return self.filter(state__in=[state.value for state in AT_WORK])

    def open(self) -> "MovePlanQuerySet":
        return self.exclude(state__in=OVER)

    def making_room(self, model: str, region: str) -> dict[str, frozenset[str]]:
        """Return the leases for which others are being moved in a pool just now, each with the cards concerned."""
        running = self.filter(state=PlanState.RUNNING.value, gpu_model=model, cluster__region=region)
        return {
            plan.room_for: frozenset(str(card["gpu"]) for card in plan.cards)
            for plan in running
            if plan.room_for
        }


class MovePlan(models.Model):
    """What would be won by moving some leases of one cluster's cards, and at what price; a dry run until accepted."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=move_plan_id)
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="move_plans")
    gpu_model = models.ForeignKey(GpuModel, on_delete=models.PROTECT, db_index=False, related_name="+")
    reason = models.CharField(max_length=300)  # why it was made, in one sentence
    cost_s = models.PositiveIntegerField()  # for how long programs stand still, together
    gain_milli = models.IntegerField()  # in thousandths of a card that can be sold whole again
    # Cards concerned as they were and would be: [{"gpu", "name", "grid", "before": [[start, size, kind]], "after"}];
    # kind 1 moves, kind 2 is where a lease goes that waits, whose id is "for" on its cards.
    cards = models.JSONField()
    state = models.CharField(max_length=12, default=PlanState.PROPOSED.value)
    state_at = models.DateTimeField()
    seq = models.PositiveIntegerField(
        default=0
    )  # rises with every entry: whoever acted on an older one is stale
    why = models.CharField(max_length=200, blank=True, default="")
    proposed_at = models.DateTimeField()
    not_before = models.DateTimeField(null=True)  # until then tenants were promised to be left alone
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)

    objects = MovePlanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "gpu_model"], condition=~Q(state__in=OVER), name="one_open_plan_per_pool"
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in PlanState]), name="move_plan_state_known"
            ),
        ]
        indexes = [models.Index(fields=["due_at"], name="move_plan_due", condition=~Q(state__in=OVER))]

    def __str__(self) -> str:
        return f"{self.gpu_model_id} of {self.cluster}"

    @property
    def over(self) -> bool:
        return PlanState(self.state) in PLAN_OVER

    @property
    def room_for(self) -> str:
        """The lease of the queue that it makes room for; empty where it makes cards whole for whoever comes."""
        return next((str(card["for"]) for card in self.cards if card.get("for")), "")

    @property
    def version(self) -> int:
        """What its ETag is made of."""
        return self.seq


class Move(TenantOwned):
    """One lease from one place to another. The row is a tenant's, the plan that it belongs to is ours."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=move_id)
    plan = models.ForeignKey(MovePlan, on_delete=models.PROTECT, related_name="moves", db_index=False)
    n = models.PositiveIntegerField()  # its turn
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="moves")
    profile = models.CharField(max_length=30)
    size = models.PositiveSmallIntegerField()
    from_gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, db_index=False, related_name="+")
    from_start = models.PositiveSmallIntegerField()
    to_gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, db_index=False, related_name="+")
    to_start = models.PositiveSmallIntegerField()
    cost_s = models.PositiveIntegerField()
    gain_milli = models.IntegerField()
    state = models.CharField(max_length=12, default=MoveState.PLANNED.value)
    state_at = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True, default="")
    not_before = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "plan", "n"], name="move_has_its_turn"),
            models.UniqueConstraint(
                fields=["tenant", "lease"],
                condition=Q(state__in=sorted(state.value for state in PROMISED)),
                name="one_open_move_per_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in MoveState]), name="move_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.lease_id} from {self.from_gpu_id} to {self.to_gpu_id}"

    @property
    def over(self) -> bool:
        return MoveState(self.state) in MOVE_OVER


class MoveEntry(models.Model):
    """One append-only row per step of a plan or of one of its moves: when, why, and by whom if by a person."""

    plan = models.ForeignKey(MovePlan, on_delete=models.PROTECT, related_name="entries", db_index=False)
    seq = models.PositiveIntegerField()
    n = models.PositiveIntegerField(null=True)  # of the move; none where it is the plan itself
    state = models.CharField(max_length=12)
    at = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "seq"], name="move_entry_once")]

    def __str__(self) -> str:
        return f"{self.plan_id}#{self.seq} {self.state}"
