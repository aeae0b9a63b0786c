"""Stops of budgets, once their moment has come. Billing asks, and the broker ends."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import F

from billing.domain.watching import StopOf
from billing.models import BudgetStop
from billing.models.budgets import LONGEST_TROUBLE
from billing.services.funds import lifting
from billing.services.funds.budgets import alone
from billing.services.funds.rota import ODD, Over, in_turn
from billing.services.funds.standings import standing
from billing.services.post import queue
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases import ending, idling
from broker.services.moving import crossing
from tenants.services.actors import Actor
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
BILLING = Actor("system", "", "billing")
MOST = 1000  # stops in a round
SLOW = timedelta(minutes=10)
OVER = (LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED)
RESTS = (LeaseState.STOPPING, LeaseState.STOPPED)
WHY = {
    StopOf.ALL: "the budget of {project} ended all that ran",
    StopOf.IDLE: "nothing of it ran, and the budget of {project} ends what is idle",
}


def stop_due(*, now: datetime) -> int:
    """Make every stop whose moment has come; return how many leases were ended. Repeating it ends none twice.

    What was told of a month that is over is not done any more: the next one begins anew. Of all comes before what
    idles, which is looked for until the month ends; of each kind first what was not looked at for longest.
    """
    with as_sweep():
        rows = BudgetStop.objects.filter(
            lifted_at=None, done_at=None, due_at__lte=now, period__span__contains=now
        )
        rows = rows.order_by("what", F("looked_at").asc(nulls_first=True), "due_at", "pk")
        found = list(rows.values_list("pk", "tenant_id")[:MOST])

    def look(stop_id: str, tenant_id: str, over: Over) -> int:
        with as_tenant(tenant_id):  # noted before: what kills whoever looks must not come first for ever
            BudgetStop.objects.filter(pk=stop_id).update(looked_at=now)
        with as_tenant(tenant_id):
            return _stop(stop_id, tenant_id, now, over=over)

    return sum(in_turn(found, look, trouble="a budget could not stop what runs"))


def late(*, now: datetime) -> int:
    """Count the stops of all that should be done by now and are not; one query, as whoever reads across tenants."""
    rows = BudgetStop.objects.filter(what=StopOf.ALL, lifted_at=None, done_at=None, due_at__lt=now - SLOW)
    return rows.filter(period__span__contains=now).count()


def _stop(stop_id: str, tenant_id: str, now: datetime, *, over: Over) -> int:
    """End what a stop is about, and note it in the same transaction: a crash in between has done nothing.

    Alone: who raises the budget has done so, or comes too late; who asks for a lease is ended, or refused. Whether the
    stop is still due is looked at once more. It is done once nothing of it is left, however often that takes.
    """
    alone(tenant_id)
    rows = BudgetStop.objects.select_related("budget__project__tenant")
    due = rows.filter(lifted_at=None, done_at=None, due_at__lte=now, period__span__contains=now)
    stop = due.filter(pk=stop_id).first()
    if stop is None:
        return 0  # called off or put off meanwhile, or another worker was faster
    (stands,) = standing([stop.budget], tenant=stop.budget.project.tenant, now=now)
    if not lifting.holds(stop, stands):
        lifting.call_off(stop, now=now)  # what was spent was corrected
        return 0
    ended, left, trouble = _end(stop, now, over)
    what = StopOf(stop.what)
    done = {"done_at": now} if what is StopOf.ALL and not left else {}
    BudgetStop.objects.filter(pk=stop.pk).update(ended=F("ended") + ended, trouble=trouble, **done)
    if done:
        queue.put("budget-stopped", stop.pk, tenant_id=tenant_id, now=now)
    return ended


def _end(stop: BudgetStop, now: datetime, over: Over) -> tuple[int, int, str]:
    """End one lease after the other; return how many ended and are left, and what kept the last of those that stay.

    One that cannot be ended is left to the next round and keeps no other one running.
    """
    what = StopOf(stop.what)
    why = WHY[what].format(project=stop.budget.project.name)
    leases, ended, trouble = list(_concerned(stop, what, now)), 0, ""
    for n, lease in enumerate(leases):
        if n and over():
            break
        try:
            with transaction.atomic():
                ending.release(lease, reason=EndReason.BUDGET, now=now, actor=BILLING, cause=why)
            ended += 1
        except ODD as odd:
            trouble = f"{lease.name} could not be ended yet, and is tried again: {odd}".replace("\0", "")
            log.error(
                "a lease outlives its budget", lease_id=lease.pk, stop=stop.pk, why=str(odd), exc_info=odd
            )
    return ended, len(leases) - ended, trouble[:LONGEST_TROUBLE]


def _concerned(stop: BudgetStop, what: StopOf, now: datetime) -> Iterable[Lease]:
    """Return what a stop ends, each row kept: what idles, or all that runs or will by itself. What is stopped rests."""
    below = Lease.objects.filter(tenant=stop.tenant_id, project__path__contains=[stop.budget.project_id])
    rows = (
        below.exclude(state__in=OVER)
        .select_for_update(of=("self",))
        .select_related("offering")
        .order_by("pk")
    )
    if what is StopOf.IDLE:
        return idling.idle(rows, now=now)
    # One that is moved to another card is stopped, too, and passes no gate when it goes on.
    return [lease for lease in rows if lease.state not in RESTS or crossing.begun(lease) is not None]
