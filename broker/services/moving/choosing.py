"""Which leases should move, to make room for one that waits or cards whole again, at what price and for what gain."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from broker.domain.moves import MoveState
from broker.domain.placement.budgets import Budget
from broker.domain.placement.moving import Step, take
from broker.domain.placement.planning import defragment
from broker.models import Move
from broker.services.moving.pools import Pool
from broker.services.moving.rooms import HORIZON_S, WHOLE, Room, room_for
from tenants.services.walls import as_staff

MOST_MOVES = 12  # in one plan: as many as an operator looks through
MOST_A_DAY = 24  # of one tenant's leases, by all plans together
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Choice:
    """The steps in their order; each costs seconds, and the one that makes a room or empties a card says its worth."""

    steps: tuple[Step, ...]
    emptied: int
    room: Room | None = None  # for whom, if for one that waits

    @property
    def cost_s(self) -> int:
        return sum(step.cost for step in self.steps)

    @property
    def gain_milli(self) -> int:
        return sum(gain_of(step) for step in self.steps)

    @property
    def reason(self) -> str:
        """Say in one sentence what is won."""
        if self.room:
            return f"Makes room for {self.room.asked}, which a lease waits for."
        if self.emptied == 1:
            return "One card holds so little that it finds room beside others; emptied, it can be sold whole."
        return (
            f"{self.emptied} cards hold so little that it finds room beside others; emptied, they can be sold"
            " whole."
        )


def choose(pool: Pool, *, now: datetime, most: int = MOST_MOVES) -> Choice:
    """Make room for whoever has waited longest of those for whom it can be made; else empty cards, while it pays.

    The pool's fleet is left as it would be then.
    """
    budget = Budget(most, per_tenant=MOST_A_DAY, spent=_moved_lately(now))
    if room := room_for(pool, budget=budget):
        return Choice(room.steps, 0, room)
    plan = defragment(pool.fleet, gain=HORIZON_S, budget=budget)
    for step in plan.steps:
        take(pool.fleet, step)
    return Choice(plan.steps, plan.before - plan.after)


def _moved_lately(now: datetime) -> dict[str, int]:
    """Return by tenant how many of its leases were moved within a day."""
    with as_staff():
        moved = Move.objects.filter(state=MoveState.DONE.value, state_at__gt=now - DAY)
        rows = moved.values("tenant_id").annotate(count=Count("id")).order_by("tenant_id")
        return {row["tenant_id"]: row["count"] for row in rows}


def gain_of(step: Step) -> int:
    """Return what a step wins in thousandths of a card."""
    return step.gain * WHOLE // HORIZON_S
