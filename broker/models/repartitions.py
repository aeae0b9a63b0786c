"""Repartitions of a node's GPUs; the row stores the next step, so workers may crash."""

from collections.abc import Mapping

from django.db import models
from django.db.models import Q

from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.repartition_steps import CANCELLABLE_STEPS, FINAL_STEPS, RepartitionStep
from broker.models.inventory import Node
from broker.models.keys import ID_LENGTH, repartition_id

FINAL_STEP_VALUES = sorted(step.value for step in FINAL_STEPS)
StoredLayout = dict[str, dict[str, int]]  # GPU index to counts of profiles, with JSON's string keys


class RepartitionQuerySet(models.QuerySet["Repartition"]):
    def under_way(self) -> "RepartitionQuerySet":
        """Return approved, unfinished changes: those with work for a worker."""
        return self.exclude(step__in=[*FINAL_STEP_VALUES, RepartitionStep.PLANNED.value])


class Repartition(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=repartition_id)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="layout_changes")
    wanted = models.JSONField()  # a Layout of every GPU of the node
    before = models.JSONField()
    gain_milli = models.IntegerField(default=0)  # expected gain, in thousandths of a GPU's value
    step = models.CharField(max_length=14, default=RepartitionStep.PLANNED.value)
    step_at = models.DateTimeField()
    seq = models.PositiveIntegerField(default=0)  # rises with every step, to detect stale writers
    why = models.CharField(max_length=200, blank=True, default="")  # the latest observation, in one sentence
    attempts = models.PositiveSmallIntegerField(default=0)  # how often the node was instructed
    checks = models.PositiveIntegerField(default=0)  # how often it was checked since the last step
    planned_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)

    objects = RepartitionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=~Q(step__in=FINAL_STEP_VALUES), name="one_layout_change_per_node"
            ),
            models.CheckConstraint(
                condition=Q(step__in=[step.value for step in RepartitionStep]), name="layout_change_step_known"
            ),
        ]
        indexes = [
            models.Index(fields=["node", "planned_at"], name="layout_change_of_node"),
            models.Index(fields=["due_at"], name="layout_change_due", condition=~Q(step__in=FINAL_STEP_VALUES)),
        ]

    def __str__(self) -> str:
        return f"{self.node} to {self.step}"

    @property
    def layouts(self) -> dict[int, GpuLayout]:
        return layouts_from_stored(self.wanted)

    @property
    def cancellable(self) -> bool:
        return RepartitionStep(self.step) in CANCELLABLE_STEPS

    @property
    def is_over(self) -> bool:
        return RepartitionStep(self.step) in FINAL_STEPS


class RepartitionLogEntry(models.Model):
    """Append-only record of a step of a repartition: when, why, and by whom.

    The actor is recorded only when a person took the step.
    """

    change = models.ForeignKey(Repartition, on_delete=models.PROTECT, related_name="steps", db_index=False)
    seq = models.PositiveIntegerField()
    step = models.CharField(max_length=14)
    at = models.DateTimeField()
    why = models.CharField(max_length=200, blank=True, default="")
    actor_label = models.CharField(max_length=254, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["change", "seq"], name="layout_step_once")]

    def __str__(self) -> str:
        return f"{self.change_id}#{self.seq} {self.step}"


def stored_layout(layouts: Mapping[int, GpuLayout]) -> StoredLayout:
    return {str(index): dict(layout.counts) for index, layout in sorted(layouts.items())}


def layouts_from_stored(layout: Mapping[str, dict[str, int]]) -> dict[int, GpuLayout]:
    return {int(index): GpuLayout.from_counts(counts) for index, counts in layout.items()}
