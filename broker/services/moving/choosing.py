"""Which leases should move so that cards become whole again: the planner's answer, in seconds and cards."""

from dataclasses import dataclass

from broker.domain.placement.budgets import Budget
from broker.domain.placement.fleet import Fleet
from broker.domain.placement.moving import Step, take
from broker.domain.placement.planning import defragment

MOST_MOVES = 12  # in one plan: as many as an operator looks through
HORIZON_S = (
    3600  # emptying a card is worth this much of it: programs may not stand still for longer than that
)
WHOLE = 1000


@dataclass(frozen=True)
class Choice:
    """The steps in their order; each costs seconds, and one that empties a card gains `HORIZON_S`."""

    steps: tuple[Step, ...]
    emptied: int

    @property
    def cost_s(self) -> int:
        return sum(step.cost for step in self.steps)

    @property
    def gain_milli(self) -> int:
        return sum(gain_of(step) for step in self.steps)


def choose(fleet: Fleet, *, most: int = MOST_MOVES) -> Choice:
    """Empty the cards that it costs least to empty, while it pays; the fleet is left as it would be then."""
    plan = defragment(fleet, gain=HORIZON_S, budget=Budget(most))
    for step in plan.steps:
        take(fleet, step)
    return Choice(plan.steps, plan.before - plan.after)


def gain_of(step: Step) -> int:
    """Return what a step wins in thousandths of a card."""
    return step.gain * WHOLE // HORIZON_S
