"""Simulator in virtual time: real services, real database and simulated provisioner, driven by a trace.

Hints that would go to Celery go into an event queue instead and run at their time.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from billing.services.demo.replay.replay_environment import REPLAY_ACTOR, REPLAY_START, ReplayEnvironment
from billing.services.demo.replay.replay_trace import ReplayRequest
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases.lease_requests import MIN_DURATION_S, LeaseRequest, request_lease
from broker.services.leases.lifecycle import termination
from broker.services.queue import queue_scheduling
from broker.services.reconciler import lease_reconciler
from ports import clock, outbox
from ports.rng import Rng
from tenants.models import Project
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope

SimulatedEvent = Callable[[datetime], None]


@dataclass
class Simulation:
    """A replay in progress, with the state that only the simulator has."""

    world: ReplayEnvironment
    seed: str
    at_month_end: SimulatedEvent
    refused: int = 0
    now: datetime = REPLAY_START
    _moments: list[tuple[datetime, int, SimulatedEvent]] = field(default_factory=list)
    _order: int = 0
    _months: int = 0  # number of scheduled month ends
    _runs_s: dict[str, int] = field(default_factory=dict)  # run times of leases that are not active yet

    def live(self, requests: Sequence[ReplayRequest]) -> datetime:
        """Run the whole trace; return the time of the last event."""
        rng = Rng(self.seed)
        for each in requests:
            project = self.world.projects[int(rng.uniform(0, len(self.world.projects)))]
            self.at(REPLAY_START + timedelta(seconds=each.arrives), partial(self._ask, each, project))
        last = REPLAY_START + timedelta(seconds=max(each.arrives + each.runs_s for each in requests))
        self._go_on_until(last)
        # The clock also measures calls: in virtual time they take none.
        with outbox.captured(self._hear), clock.frozen_at(REPLAY_START) as virtual:
            while self._moments:
                virtual.at, _, act = heapq.heappop(self._moments)
                self.now = virtual.at
                self._go_on_until(self.now)  # leases that waited long run past the end of the trace
                act(self.now)
        return self.now

    def _go_on_until(self, moment: datetime) -> None:
        """Schedule month ends up to and past a time."""
        ends = month_ends(REPLAY_START, moment)
        for month_end in ends[self._months :]:
            self.at(month_end, self.at_month_end)
        self._months = max(self._months, len(ends))

    def at(self, moment: datetime, act: SimulatedEvent) -> None:
        """Schedule an event at a time, after those scheduled earlier for the same time."""
        self._order += 1
        heapq.heappush(self._moments, (moment, self._order, act))

    def _hear(self, task: str, subject: str, tenant_id: str, at: datetime) -> None:
        if task == "broker.run_queue":
            model, _, region = subject.partition("|")
            self.at(at, lambda now: self._serve((model, region), now))
            return
        if at > self.now and subject in self._runs_s and _is_active(subject):
            # This hint is for its latest end: it just became active, and the trace ends it earlier.
            self._let_go(subject, tenant_id)
            return
        self.at(at, lambda now: lease_reconciler.reconcile_lease(subject, tenant_id, now=now))

    def _serve(self, pool: tuple[str, str], now: datetime) -> None:
        queue_scheduling.run_queue(pool, now=now)

    def _ask(self, each: ReplayRequest, project: Project, now: datetime) -> None:
        offering = self.world.offerings[each.profile, each.isolation]
        wanted = LeaseRequest(
            offering_id=offering.pk,
            name=f"openb-{each.number:04d}",
            max_duration_s=max(each.runs_s, MIN_DURATION_S) + 1,
            quantity=each.count,
            same_node=each.count > 1,
        )
        with tenant_scope(project.tenant_id):
            try:
                lease = request_lease(wanted, project=project, actor=REPLAY_ACTOR, now=now)
            except ProblemError:
                self.refused += 1
                return
        self._runs_s[lease.pk] = each.runs_s

    def _let_go(self, lease_id: str, tenant_id: str) -> None:
        ends = self.now + timedelta(seconds=self._runs_s.pop(lease_id))
        self.at(ends, lambda now: self._end(lease_id, tenant_id, now))

    def _end(self, lease_id: str, tenant_id: str, now: datetime) -> None:
        with tenant_scope(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            termination.release_lease(lease, reason=EndReason.BY_TENANT, now=now, actor=REPLAY_ACTOR)


def _is_active(lease_id: str) -> bool:
    return Lease.objects.filter(pk=lease_id, state=LeaseState.ACTIVE).exists()


def month_ends(first: datetime, last: datetime) -> list[datetime]:
    """Return for every month of the span a time when it is over everywhere."""
    found: list[datetime] = []
    year, month = first.year, first.month
    while not found or found[-1] < last:
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
        found.append(first.replace(year=year, month=month, day=1, hour=13, minute=0, second=0, microsecond=0))
    return found
