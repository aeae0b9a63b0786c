"""How long it took after each kill until the product was itself again."""

from collections.abc import Sequence

from tests.chaos.checks import Check
from tests.chaos.client import Answer
from tests.chaos.history import History
from tests.chaos.nemesis import Kill

API_S, WORK_S, HOME_S = 5.0, 15.0, 60.0
WORKER_KILLS = ("worker's main process", "worker with its children")
BOOT_S = 0.5  # no worker is up sooner: what moved until then was committed by the dead one

FIRST_STEP = """
SELECT min(extract(epoch FROM recorded_at)) FROM broker_transition
 WHERE actor_kind = 'system' AND recorded_at > to_timestamp(%s)
"""
# What was on its way at the moment of the kill, and when it first stood still; a full fleet's queue is no fault.
HOME = """
SELECT count(*), coalesce(max(extract(epoch FROM home.at)), 0) FROM (
  SELECT t.lease_id, (SELECT min(n.recorded_at) FROM broker_transition n
                       WHERE n.lease_id = t.lease_id AND n.seq > t.seq) AS at
    FROM broker_transition t
   WHERE t.after IN ('provisioning', 'releasing') AND t.recorded_at <= to_timestamp(%(kill)s)
     AND NOT EXISTS (SELECT FROM broker_transition n WHERE n.lease_id = t.lease_id AND n.seq = t.seq + 1
                        AND n.recorded_at <= to_timestamp(%(kill)s))) home
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
    """Somebody works again soon after the worker was killed."""
    waits = []
    for kill in kills:
        if kill.kind in WORKER_KILLS:
            ((at,),) = history.rows(FIRST_STEP, kill.at + BOOT_S)
            waits.append(float(str(at)) - kill.at if at else float("inf"))
    return _check("work after the worker was killed", waits, WORK_S)


def home(kills: Sequence[Kill], history: History) -> Check:
    """What was on its way when something was killed arrives."""
    waits, leases = [], 0
    for kill in kills:
        ((count, last),) = history.rows(HOME.replace("%(kill)s", repr(kill.at)))
        leases += int(str(count))
        waits.append(max(float(str(last)) - kill.at, 0.0))
    return _check(f"{leases} leases on their way at a kill", waits, HOME_S)


def _check(name: str, waits: Sequence[float], limit: float) -> Check:
    worst, mean = max(waits, default=0.0), sum(waits) / max(len(waits), 1)
    figures = f"{len(waits)} kills, {mean:.1f} s in the mean, {worst:.1f} s at worst, {limit:.0f} s allowed"
    return Check(name, worst <= limit, figures)


def calm(took: float) -> Check:
    """After the last kill everything converges."""
    return Check("convergence after the storm", took <= HOME_S, f"{took:.1f} s, {HOME_S:.0f} s allowed")
