"""Virtual time: the real services, the real database and the simulated provisioner, driven by a trace.

Hints that would go to Celery go into the queue of moments instead, and run when their moment has come.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from billing.services.replay.trace import Request
from billing.services.replay.world import BEGIN, REPLAY, World
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.services import reconcile
from broker.services.leases import ending, serving
from broker.services.leases.request import MIN_DURATION_S, Wanted, request
from ports import clock, doorbell
from ports.chance import Chance
from tenants.models import Project
from tenants.services.refusals import Refused
from tenants.services.walls import as_tenant

Act = Callable[[datetime], None]


@dataclass
class Run:
    """A replay under way, and what only its driver can know."""

    world: World
    seed: str
    at_month_end: Act
    refused: int = 0
    now: datetime = BEGIN
    _moments: list[tuple[datetime, int, Act]] = field(default_factory=list)
    _order: int = 0
    _months: int = 0  # so many ends of months are planned
    _runs_s: dict[str, int] = field(default_factory=dict)  # of leases that are not active yet

    def live(self, requests: Sequence[Request]) -> datetime:
        """Let everything happen; return the moment of the last thing that did."""
        chance = Chance(self.seed)
        for each in requests:
            project = self.world.projects[int(chance.uniform(0, len(self.world.projects)))]
            self.at(BEGIN + timedelta(seconds=each.arrives), partial(self._ask, each, project))
        last = BEGIN + timedelta(seconds=max(each.arrives + each.runs_s for each in requests))
        self._go_on_until(last)
        # How long a call took is told by the clock too: in virtual time it takes none.
        with doorbell.heard_by(self._hear), clock.standing_at(BEGIN) as virtual:
            while self._moments:
                virtual.at, _, act = heapq.heappop(self._moments)
                self.now = virtual.at
                self._go_on_until(self.now)  # who waited long runs on after the trace has ended
                act(self.now)
        return self.now

    def _go_on_until(self, moment: datetime) -> None:
        """Let months end until after a moment."""
        ends = month_ends(BEGIN, moment)
        for month_end in ends[self._months :]:
            self.at(month_end, self.at_month_end)
        self._months = max(self._months, len(ends))

    def at(self, moment: datetime, act: Act) -> None:
        """Let something happen at a moment, after whatever was planned for it before."""
        self._order += 1
        heapq.heappush(self._moments, (moment, self._order, act))

    def _hear(self, task: str, subject: str, tenant_id: str, at: datetime) -> None:
        if task == "broker.serve":
            model, _, region = subject.partition("|")
            self.at(at, lambda now: self._serve((model, region), now))
            return
        if at > self.now and subject in self._runs_s and _active(subject):
            # The hint for its longest end: it has just become active, and the trace ends it before that.
            self._let_go(subject, tenant_id)
            return
        self.at(at, lambda now: reconcile.step(subject, tenant_id, now=now))

    def _serve(self, pool: tuple[str, str], now: datetime) -> None:
        serving.serve(pool, now=now)

    def _ask(self, each: Request, project: Project, now: datetime) -> None:
        offering = self.world.offerings[each.profile, each.isolation]
        wanted = Wanted(
            offering_id=offering.pk,
            name=f"openb-{each.number:04d}",
            max_duration_s=max(each.runs_s, MIN_DURATION_S) + 1,
            quantity=each.count,
            same_node=each.count > 1,
        )
        with as_tenant(project.tenant_id):
            try:
                lease = request(wanted, project=project, actor=REPLAY, now=now)
            except Refused:
                self.refused += 1
                return
        self._runs_s[lease.pk] = each.runs_s

    def _let_go(self, lease_id: str, tenant_id: str) -> None:
        ends = self.now + timedelta(seconds=self._runs_s.pop(lease_id))
        self.at(ends, lambda now: self._end(lease_id, tenant_id, now))

    def _end(self, lease_id: str, tenant_id: str, now: datetime) -> None:
        with as_tenant(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            ending.release(lease, reason=EndReason.BY_TENANT, now=now, actor=REPLAY)


def _active(lease_id: str) -> bool:
    return Lease.objects.filter(pk=lease_id, state=LeaseState.ACTIVE).exists()


def month_ends(first: datetime, last: datetime) -> list[datetime]:
    """Return a moment after the end of every month of the span, when it is over in every time zone."""
    found: list[datetime] = []
    year, month = first.year, first.month
    while not found or found[-1] < last:
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        found.append(first.replace(year=year, month=month, day=1, hour=13, minute=0, second=0, microsecond=0))
    return found
