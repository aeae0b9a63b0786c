"""What happened lately to the leases of a project, in words."""

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from billing.domain.money import Money
from billing.models import BudgetAlert, Invoice
from billing.portal import told
from billing.portal.pages import Scope
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease, Transition
from broker.services.leases import ticks

SHOWN = 7
READ = 60  # enough to find so many that are worth telling
S = LeaseState
ENDS = {
    EndReason.BY_TENANT: "released by {by}",
    EndReason.BY_OPERATOR: "ended by an operator",
    EndReason.EXPIRED: "reached its end",
    EndReason.DEVICE_LOST: "ended: its card was lost",
    EndReason.PROVISION_TIMEOUT: "was not ready in time; nothing is charged",
    EndReason.SPEC_REFUSED: "was refused by the cluster; nothing is charged",
    EndReason.BUDGET: "ended: {cause}",
}


@dataclass(frozen=True)
class Event:
    """One thing that happened, and the shape of its news."""

    url: str
    name: str
    words: str
    state: str
    at: datetime


def recent(scope: Scope, *, money: bool) -> list[Event]:
    """Return the latest news, newest first; three queries, and one for invoices where they may be seen."""
    found = [*steps_of(scope), *budgets_of(scope), *(finalized(scope) if money else [])]
    return sorted(found, key=lambda event: event.at, reverse=True)[:SHOWN]


def budgets_of(scope: Scope) -> list[Event]:
    """Return the latest shares of budgets that were reached."""
    rows = BudgetAlert.objects.select_related("budget__project").filter(tenant=scope.tenant)
    if not scope.whole:
        rows = rows.filter(budget__project__path__contains=[scope.project.pk])
    return [
        Event(reverse("budgets"), f"Budget of {row.budget.project.name}", told.words(row), "draft", row.at)
        for row in rows.order_by("-at", "-pk")[:SHOWN]
    ]


def finalized(scope: Scope) -> list[Event]:
    """Return the latest invoice that became final."""
    rows = Invoice.objects.filter(tenant=scope.tenant, finalized_at__isnull=False).order_by("-finalized_at")
    return [
        Event(
            reverse("invoice", args=[invoice.pk]),
            f"Invoice {invoice}",
            became(invoice),
            invoice.status,
            invoice.paid_at or invoice.finalized_at or scope.tenant.created_at,
        )
        for invoice in rows[:1]
    ]


def became(invoice: Invoice) -> str:
    """Say what became of a final invoice, with what was paid or is still to be."""
    if invoice.paid_at and not invoice.to_pay:
        return f"is settled, {Money(invoice.total, invoice.currency)}"
    if invoice.paid_at:
        return f"is paid, {Money(invoice.to_pay, invoice.currency)}"
    return f"is final, {Money(invoice.due, invoice.currency)} to be paid"


def steps_of(scope: Scope) -> list[Event]:
    """Return the latest steps of leases that are worth telling."""
    steps = Transition.objects.filter(tenant_id=scope.tenant.pk)
    if not scope.whole:
        steps = steps.filter(project_id__in=scope.projects().values("pk"))
    latest = [(step, tell(step)) for step in steps.order_by("-xid", "-position")[:READ]]
    told = [(step, words) for step, words in latest if words][:SHOWN]
    names = dict(Lease.objects.filter(pk__in={step.lease_id for step, _ in told}).values_list("pk", "name"))
    return [
        Event(
            reverse("lease", args=[step.lease_id]),
            names.get(step.lease_id, step.lease_id),
            words,
            step.after,
            step.at,
        )
        for step, words in told
    ]


def named(step: Transition) -> str:
    """Name who did it; a tenant is not told which operator."""
    return (
        "an operator" if step.actor_kind == "staff" else step.actor_label.partition("@")[0] or step.actor_kind
    )


def tell(step: Transition) -> str:
    """Say what a step means; nothing for those that only lead to the next one."""
    by = named(step)
    match S(step.after):
        case S.QUEUED if step.before == S.REQUESTED:
            return f"asked for by {by}"
        case S.ACTIVE if step.before == S.ACTIVE and step.cause != ticks.CAUSE:
            return step.cause
        case S.STOPPING if step.reason == EndReason.BY_OPERATOR:
            return step.cause
        case S.QUEUED if step.before == S.STOPPED and step.actor_kind == "system":
            return ""  # on its way to another card, or back
        case S.QUEUED if step.before == S.STOPPED:
            return f"started again by {by}"
        case S.QUEUED:
            return f"waits again: {step.cause}"
        case S.PROVISIONING:
            return step.cause
        case S.ACTIVE if step.before == S.PROVISIONING:
            return "is active, readiness verified"
        case S.STOPPING:
            return f"stopped by {by}; its volume is kept"
        case S.RELEASING:
            return ENDS.get(EndReason(step.reason), step.cause).format(by=by, cause=step.cause)
        case S.FAILED:
            return f"failed: {step.cause}"
        case _:
            return ""
