"""Stops of budgets, once their moment has come. Billing asks, and the broker ends."""

from collections.abc import Iterable
from datetime import datetime

import structlog
from django.db import DatabaseError
from django.db.models import F

from billing.domain.watching import StopOf
from billing.models import BudgetStop
from billing.services.funds.budgets import alone
from billing.services.post import queue
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease, StaleLease
from broker.services.leases import ending, idling
from broker.services.moving import crossing
from tenants.services.actors import Actor
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
BILLING = Actor("system", "", "billing")
OVER = (LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED)
RESTS = (LeaseState.STOPPING, LeaseState.STOPPED)
WHY = {
    StopOf.ALL: "the budget of {project} ended all that ran",
    StopOf.IDLE: "nothing of it ran, and the budget of {project} ends what is idle",
}


def stop_due(*, now: datetime) -> int:
    """Make every stop whose moment has come; return how many leases were ended. Repeating it ends none twice.

    What was told of a month that is over is not done any more: the next one begins anew.
    """
    with as_sweep():
        rows = BudgetStop.objects.filter(
            lifted_at=None, done_at=None, due_at__lte=now, period__span__contains=now
        )
        found = list(rows.order_by("due_at", "pk").values_list("pk", "tenant_id"))
    ended = 0
    for stop_id, tenant_id in found:
        try:
            with as_tenant(tenant_id):
                ended += _stop(stop_id, tenant_id, now)
        except (DatabaseError, StaleLease) as error:
            log.error("a budget could not stop what runs", stop=stop_id, why=str(error).strip())
    return ended


def _stop(stop_id: str, tenant_id: str, now: datetime) -> int:
    """End what a stop is about, and note it in the same transaction: a crash in between has done nothing.

    Alone: who raises the budget has done so, or comes too late; who asks for a lease is ended, or refused.
    """
    alone(tenant_id)
    rows = BudgetStop.objects.select_related("budget__project")
    stop = rows.filter(pk=stop_id, lifted_at=None, done_at=None).first()
    if stop is None:
        return 0  # called off meanwhile, or another worker was faster
    what = StopOf(stop.what)
    why = WHY[what].format(project=stop.budget.project.name)
    leases = list(_concerned(stop, what, now))
    for lease in leases:
        ending.release(lease, reason=EndReason.BUDGET, now=now, actor=BILLING, cause=why)
    done = {"done_at": now} if what is StopOf.ALL else {}
    BudgetStop.objects.filter(pk=stop.pk).update(ended=F("ended") + len(leases), **done)
    if what is StopOf.ALL:
        queue.put("budget-stopped", stop.pk, tenant_id=tenant_id, now=now)
    return len(leases)


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
