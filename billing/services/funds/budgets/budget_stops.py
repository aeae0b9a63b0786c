"""Budget stops that are due: end the leases through the broker."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import F

from billing.domain.budgets import StopScope
from billing.models import BudgetStop
from billing.models.budgets import MAX_ERROR_LENGTH
from billing.services.funds.budgets import budget_increases
from billing.services.funds.budgets.budget_balances import budget_balances
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.funds.budgets.fair_batches import ROW_ERRORS, TimeIsOver, process_fairly
from billing.services.notifications import email_queue
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases import attempt_records, idle_leases, relocation_steps
from broker.services.leases.lifecycle import termination
from tenants.services.actors import BILLING
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
BATCH_SIZE = 1000  # stops per run
LATE_AFTER = timedelta(minutes=10)
ENDED_STATES = (LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED)
STOPPED_STATES = (LeaseState.STOPPING, LeaseState.STOPPED)
END_REASONS = {
    StopScope.ALL: "the budget of {project} ended all leases",
    StopScope.IDLE: "it was idle, and the budget of {project} ended idle leases",
}


def execute_due_stops(*, now: datetime) -> int:
    """Execute every due stop; return how many leases were ended.

    Repeating it ends none twice. A stop announced for a month that is over is dropped: the next month
    begins anew. Stops of everything come before stops of idle leases, which are repeated until the
    month ends; within each kind, those that were not checked for longest come first.
    """
    with system_scope():
        rows = BudgetStop.objects.filter(lifted_at=None, done_at=None, due_at__lte=now, period__span__contains=now)
        rows = rows.order_by("what", F("checked_at").asc(nulls_first=True), "due_at", "pk")
        found = list(rows.values_list("pk", "tenant_id")[:BATCH_SIZE])

    def process_stop(stop_id: str, tenant_id: str, over: TimeIsOver) -> int:
        with tenant_scope(tenant_id):  # recorded before, so that a crashing stop does not stay first
            BudgetStop.objects.filter(pk=stop_id).update(checked_at=now)
        with tenant_scope(tenant_id):
            return _execute_stop(stop_id, tenant_id, now, over=over)

    return sum(process_fairly(found, process_stop, trouble="budget stop failed"))


def count_late_stops(*, now: datetime) -> int:
    """Count overdue stops of everything; one query. Requires system or staff scope."""
    rows = BudgetStop.objects.filter(what=StopScope.ALL, lifted_at=None, done_at=None, due_at__lt=now - LATE_AFTER)
    return rows.filter(period__span__contains=now).count()


def _execute_stop(stop_id: str, tenant_id: str, now: datetime, *, over: TimeIsOver) -> int:
    """End the leases of one stop, and record it in the same transaction.

    A crash in between has done nothing. The tenant is locked: a budget was raised before, or too late,
    and a lease requested meanwhile is ended or refused. Whether the stop is still due is checked again.
    It is done once no lease is left, however many runs that takes.
    """
    lock_tenant_funds(tenant_id)
    rows = BudgetStop.objects.select_related("budget__project__tenant")
    due = rows.filter(lifted_at=None, done_at=None, due_at__lte=now, period__span__contains=now)
    stop = due.filter(pk=stop_id).first()
    if stop is None:
        return 0  # cancelled, postponed, or done by another worker
    (balance,) = budget_balances([stop.budget], tenant=stop.budget.project.tenant, now=now)
    if not budget_increases.is_stop_due(stop, balance):
        budget_increases.cancel_stop(stop, now=now)  # spending was corrected below the share
        return 0
    ended, left, trouble = _end_leases(stop, now, over)
    what = StopScope(stop.what)
    done = {"done_at": now} if what is StopScope.ALL and not left else {}
    BudgetStop.objects.filter(pk=stop.pk).update(ended=F("ended") + ended, last_error=trouble, **done)
    if done:
        email_queue.enqueue_email("budget-stopped", stop.pk, tenant_id=tenant_id, now=now)
    return ended


def _end_leases(stop: BudgetStop, now: datetime, over: TimeIsOver) -> tuple[int, int, str]:
    """End one lease after the other; return the ended, the remaining, and the last error.

    A lease that cannot be ended is left to the next run and does not block the others.
    """
    what = StopScope(stop.what)
    why = END_REASONS[what].format(project=stop.budget.project.name)
    leases, ended, trouble = list(_leases_to_end(stop, what, now)), 0, ""
    for n, lease in enumerate(leases):
        if n and over():
            break
        try:
            with transaction.atomic():
                termination.release_lease(lease, reason=EndReason.BUDGET, now=now, actor=BILLING, cause=why)
            ended += 1
        except ROW_ERRORS as error:
            trouble = f"{lease.name} could not be ended yet and is retried: {error}".replace("\0", "")
            log.error(
                "lease not ended by its budget yet", lease_id=lease.pk, stop=stop.pk, why=str(error), exc_info=error
            )
    return ended, len(leases) - ended, trouble[:MAX_ERROR_LENGTH]


def _leases_to_end(stop: BudgetStop, what: StopScope, now: datetime) -> Iterable[Lease]:
    """Return the leases that a budget stop ends, locked.

    These are idle ones, or all active and queued ones; stopped leases are left alone.
    """
    below = Lease.objects.filter(tenant=stop.tenant_id, project__path__contains=[stop.budget.project_id])
    rows = (
        below.exclude(state__in=ENDED_STATES).select_for_update(of=("self",)).select_related("offering").order_by("pk")
    )
    if what is StopScope.IDLE:
        return idle_leases.idle_leases(rows, now=now)
    return [lease for lease in rows if lease.state not in STOPPED_STATES or _continues_by_itself(lease)]


def _continues_by_itself(lease: Lease) -> bool:
    """Return whether a stopped lease will run again without passing a gate.

    So does one under relocation, and a batch between two runs of its command.
    """
    moving = relocation_steps.started_relocation(lease) is not None
    return moving or attempt_records.find_pending_retry(lease) is not None
