"""What happens to an invoice that is not paid in time: a few steps, so many days after the day it was due."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

WRITTEN = re.compile(r"([0-9]{1,3}):([a-z]+)")


class Action(StrEnum):
    REMIND = "remind"  # a letter, and its tenant is in grace
    SUSPEND = "suspend"  # nothing new begins
    END = "end"  # what runs is ended


KNOWN = frozenset(each.value for each in Action)


@dataclass(frozen=True, slots=True)
class Step:
    after: timedelta
    action: Action


def schedule(written: Iterable[str]) -> tuple[Step, ...]:
    """Read steps such as `3:remind`, days and what happens then, in their order; raise ValueError for what is none."""
    steps = []
    for text in written:
        found = WRITTEN.fullmatch(text.strip())
        if found is None or found[2] not in KNOWN:
            raise ValueError(f"{text!r} is no step: write days and {', '.join(Action)}, such as 3:remind")
        steps.append(Step(timedelta(days=int(found[1])), Action(found[2])))
    if [step.after for step in steps] != sorted({step.after for step in steps}):
        raise ValueError("the steps are not in the order of their days, each on a day of its own")
    return tuple(steps)


def next_at(steps: Sequence[Step], *, due: datetime, done: Sequence[datetime]) -> datetime | None:
    """Return when the next step is due, given when those before it were done; None after the last.

    Whoever was reminded late is given as many days before the next step as whoever was reminded in time.
    """
    n = len(done)
    if n >= len(steps):
        return None
    at = due + steps[n].after
    return max(at, done[-1] + steps[n].after - steps[n - 1].after) if done else at
