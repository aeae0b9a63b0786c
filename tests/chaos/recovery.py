"""The recovery time of the product after each kill."""

from collections.abc import Sequence

from tests.chaos.checks import Check
from tests.chaos.client import Answer
from tests.chaos.fault_injector import Kill
from tests.chaos.history import History

API_S, WORK_S, HOME_S = 5.0, 15.0, 60.0
WORKER_KILLS = ("worker's main process", "worker with its children")
BOOT_S = 0.5  # no worker is up sooner: what moved until then was committed by the dead one

FIRST_STEP = """
SELECT min(extract(epoch FROM recorded_at)) FROM broker_transition
 WHERE actor_kind = 'system' AND recorded_at > to_timestamp(%s)
"""


def api(kills: Sequence[Kill], answers: Sequence[Answer]) -> Check:
    """The API answers again soon after PostgreSQL was killed."""
    waits = []
    for kill in kills:
        if kill.kind == "PostgreSQL":
            good = [a.at for a in answers if a.accepted and a.sent > kill.at]
            waits.append(min(good) - kill.at if good else float("inf"))
    return _check("the API after PostgreSQL was killed", waits, API_S)


def work(kills: Sequence[Kill], history: History) -> Check:
    """A worker runs again soon after the worker was killed."""
    waits = []
    for kill in kills:
        if kill.kind in WORKER_KILLS:
            ((at,),) = history.rows(FIRST_STEP, kill.at + BOOT_S)
            waits.append(float(str(at)) - kill.at if at else float("inf"))
    return _check("work after the worker was killed", waits, WORK_S)


def home(what: str, took: float) -> Check:
    """Time from the last kill until no lease is in transition."""
    return Check(f"all is home after {what}", took <= HOME_S, f"{took:.1f} s, {HOME_S:.0f} s allowed")


def _check(name: str, waits: Sequence[float], limit: float) -> Check:
    worst, mean = max(waits, default=0.0), sum(waits) / max(len(waits), 1)
    figures = f"{len(waits)} kills, {mean:.1f} s in the mean, {worst:.1f} s at worst, {limit:.0f} s allowed"
    return Check(name, worst <= limit, figures)
