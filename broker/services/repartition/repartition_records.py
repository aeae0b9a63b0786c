"""State changes of a repartition, with their history and the closing of GPUs."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.domain.repartition.repartition_steps import CLOSED_STEPS, FINAL_STEPS, NEXT_STEPS, RepartitionStep
from broker.models import Gpu, Repartition, RepartitionLogEntry

MAX_REASON_LENGTH = 200


@transaction.atomic
def set_repartition_step(
    change: Repartition, step: RepartitionStep, *, why: str, now: datetime, actor_label: str = ""
) -> bool:
    """Change the state of a repartition; return False if another worker was faster."""
    if step not in NEXT_STEPS[RepartitionStep(change.step)]:
        raise ValueError(f"a change that is {change.step} cannot become {step}")
    over = step in FINAL_STEPS
    moved = Repartition.objects.filter(pk=change.pk, seq=change.seq).update(
        step=step.value,
        step_at=now,
        seq=F("seq") + 1,
        why=why[:MAX_REASON_LENGTH],
        checks=0,
        attempts=change.attempts + (step is RepartitionStep.REPARTITIONING),
        due_at=None if over else now,
        claimed_until=None,
    )
    if not moved:
        return False
    RepartitionLogEntry.objects.create(
        change=change, seq=change.seq + 1, step=step.value, at=now, why=why[:MAX_REASON_LENGTH], actor_label=actor_label
    )
    if step is RepartitionStep.CLOSING:
        close_node(change, now=now)
    elif step not in CLOSED_STEPS:
        Gpu.objects.filter(node_id=change.node_id).update(out_of_service_since=None, version=F("version") + 1)
    change.refresh_from_db()
    return True


def close_node(change: Repartition, *, now: datetime) -> None:
    """Stop new placements on the node.

    Waits for placers that have locked one of its GPUs.
    """
    gpus = Gpu.objects.filter(node_id=change.node_id, out_of_service_since=None)
    gpus.update(out_of_service_since=now, version=F("version") + 1)
