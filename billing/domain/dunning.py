"""Dunning schedule: actions a number of days after an unpaid invoice was due."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

STAGE_FORMAT = re.compile(r"([0-9]{1,3}):([a-z]+)")


class DunningAction(StrEnum):
    REMIND = "remind"  # an e-mail, and the account status becomes grace
    SUSPEND = "suspend"  # no new leases
    END = "end"  # running leases are ended


KNOWN_ACTIONS = frozenset(each.value for each in DunningAction)


@dataclass(frozen=True, slots=True)
class DunningStage:
    after: timedelta
    action: DunningAction


def parse_schedule(written: Iterable[str]) -> tuple[DunningStage, ...]:
    """Parse stages such as `3:remind` (days and action), in order; raise ValueError if malformed."""
    steps = []
    for text in written:
        found = STAGE_FORMAT.fullmatch(text.strip())
        if found is None or found[2] not in KNOWN_ACTIONS:
            raise ValueError(f"{text!r} is not a step; write days and {', '.join(DunningAction)}, such as 3:remind")
        steps.append(DunningStage(timedelta(days=int(found[1])), DunningAction(found[2])))
    if [step.after for step in steps] != sorted({step.after for step in steps}):
        raise ValueError("the steps are not in the order of their days, each on a day of its own")
    return tuple(steps)


def next_stage_at(steps: Sequence[DunningStage], *, due: datetime, done: Sequence[datetime]) -> datetime | None:
    """Return when the next stage is due, or None after the last.

    `done` is when earlier stages were done. A late reminder moves later stages back, so every customer
    gets the same number of days between two stages.
    """
    n = len(done)
    if n >= len(steps):
        return None
    at = due + steps[n].after
    return max(at, done[-1] + steps[n].after - steps[n - 1].after) if done else at
