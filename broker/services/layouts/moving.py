"""A change's one way from step to step: the row, the ledger of its steps and the cards it closes, together."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.domain.repartition import CLOSED, NEXT, OVER, Step
from broker.models import Gpu, LayoutChange, LayoutStep

LONGEST = 200


@transaction.atomic
def move(change: LayoutChange, step: Step, *, why: str, now: datetime, actor_label: str = "") -> bool:
    """Take one step, if the change is still where it was read; False when somebody was faster."""
    if step not in NEXT[Step(change.step)]:
        raise ValueError(f"a change that is {change.step} cannot become {step}")
    over = step in OVER
    moved = LayoutChange.objects.filter(pk=change.pk, seq=change.seq).update(
        step=step.value,
        step_at=now,
        seq=F("seq") + 1,
        why=why[:LONGEST],
        tries=0,
        attempts=change.attempts + (step is Step.CUTTING),
        due_at=None if over else now,
        claimed_until=None,
    )
    if not moved:
        return False
    LayoutStep.objects.create(
        change=change, seq=change.seq + 1, step=step.value, at=now, why=why[:LONGEST], actor_label=actor_label
    )
    if step is Step.CLOSING:
        close(change, now=now)
    elif step not in CLOSED:
        Gpu.objects.filter(node_id=change.node_id).update(closed_since=None, version=F("version") + 1)
    change.refresh_from_db()
    return True


def close(change: LayoutChange, *, now: datetime) -> None:
    """Let nothing new be placed on the node: a placer that holds one of its cards is waited for here."""
    cards = Gpu.objects.filter(node_id=change.node_id, closed_since=None)
    cards.update(closed_since=now, version=F("version") + 1)
