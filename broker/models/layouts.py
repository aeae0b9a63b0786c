"""Cutting a node anew, kept step by step: whatever dies meanwhile, the row says what is next."""

from collections.abc import Mapping

from django.db import models
from django.db.models import Q

from broker.domain.cuts import Cut
from broker.domain.repartition import CANCELLABLE, OVER, Step
from broker.models.inventory import Node
from broker.models.keys import ID_LENGTH, layout_change_id

OVER_VALUES = sorted(step.value for step in OVER)
Layout = dict[str, dict[str, int]]  # card index to counts of profiles, as JSON has it


class LayoutChangeQuerySet(models.QuerySet["LayoutChange"]):
    def under_way(self) -> "LayoutChangeQuerySet":
        """Approved and not over: a worker has something to do."""
        return self.exclude(step__in=[*OVER_VALUES, Step.PLANNED.value])


class LayoutChange(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=layout_change_id)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="layout_changes")
    wanted = models.JSONField()  # a Layout of every card of the node
    before = models.JSONField()
    gain_milli = models.IntegerField(default=0)  # what it was hoped to win, in thousandths of a card's worth
    step = models.CharField(max_length=12, default=Step.PLANNED.value)
    step_at = models.DateTimeField()
    seq = models.PositiveIntegerField(
        default=0
    )  # rises with every step: whoever acted on an older one is stale
    why = models.CharField(max_length=200, blank=True, default="")  # what was seen last, in one sentence
    attempts = models.PositiveSmallIntegerField(default=0)  # how often the node was told
    tries = models.PositiveIntegerField(default=0)  # how often somebody looked since the last step
    planned_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)

    objects = LayoutChangeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=~Q(step__in=OVER_VALUES), name="one_layout_change_per_node"
            ),
            models.CheckConstraint(
                condition=Q(step__in=[step.value for step in Step]), name="layout_change_step_known"
            ),
        ]
        indexes = [
            models.Index(fields=["node", "planned_at"], name="layout_change_of_node"),
            models.Index(fields=["due_at"], name="layout_change_due", condition=~Q(step__in=OVER_VALUES)),
        ]

    def __str__(self) -> str:
        return f"{self.node} to {self.step}"

    @property
    def cuts(self) -> dict[int, Cut]:
        return cuts_from(self.wanted)

    @property
    def cancellable(self) -> bool:
        return Step(self.step) in CANCELLABLE

    @property
    def over(self) -> bool:
        return Step(self.step) in OVER


class LayoutStep(models.Model):
    """One append-only row per step of a change: when it was taken, why, and by whom if by a person."""

    change = models.ForeignKey(LayoutChange, on_delete=models.PROTECT, related_name="steps", db_index=False)
    seq = models.PositiveIntegerField()
    step = models.CharField(max_length=12)
    at = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["change", "seq"], name="layout_step_once")]

    def __str__(self) -> str:
        return f"{self.change_id}#{self.seq} {self.step}"


def layout_of(cuts: Mapping[int, Cut]) -> Layout:
    return {str(index): dict(cut.counts) for index, cut in sorted(cuts.items())}


def cuts_from(layout: Mapping[str, dict[str, int]]) -> dict[int, Cut]:
    return {int(index): Cut.counted(counts) for index, counts in layout.items()}
