"""The order in which slices are moved, so that every place is free when its slice comes."""

from collections.abc import Iterable
from dataclasses import replace

from broker.domain.placement.moving import Step
from broker.domain.placement.tables import EMPTY, Table


def ordered(
    table: Table, taken: dict[int, int], steps: Iterable[Step], spare: int | None
) -> list[Step] | None:
    """Order steps that are all to be taken, or return None where they wait for each other in a circle.

    `taken` is what is taken, as bits, of every card concerned before the first step. A circle is broken by moving
    one slice by way of the spare card, which must be empty and is empty again in the end.
    """
    taken, waiting, done = dict(taken), list(steps), []
    while waiting:
        step = next((each for each in waiting if not _blocked(table, taken, each)), None)
        if step:
            waiting.remove(step)
        else:
            if spare is None or taken.get(spare, 0):
                return None
            blocked = waiting.pop(0)
            start = table.moves[blocked.profile][EMPTY][0].start
            step = replace(blocked, to_card=spare, to_start=start, gain=0)
            waiting.append(replace(blocked, card=spare, start=start))
        done.append(step)
        taken[step.card] &= ~table.bits(step.profile, step.start)
        taken[step.to_card] = taken.get(step.to_card, 0) | table.bits(step.profile, step.to_start)
    return done


def _blocked(table: Table, taken: dict[int, int], step: Step) -> bool:
    return bool(taken[step.to_card] & table.bits(step.profile, step.to_start))
