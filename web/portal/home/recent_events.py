"""Recent events of a project, in words: leases, budgets, invoices."""

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.domain.money import Money
from billing.models import BudgetAlert, Invoice
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease, Transition
from broker.models.transitions import TICK_CAUSE
from web.portal.budgets import budget_alerts
from web.portal.page_context import Scope

MAX_EVENTS = 7
TRANSITIONS_READ = 60  # transitions read to find enough that are worth showing
S = LeaseState
END_TEXTS = {
    EndReason.BY_TENANT: gettext_noop("released by {by}"),
    EndReason.BY_OPERATOR: gettext_noop("ended by an operator"),
    EndReason.EXPIRED: gettext_noop("reached its end"),
    EndReason.DEVICE_LOST: gettext_noop("ended: its node or GPU was lost"),
    EndReason.PROVISION_TIMEOUT: gettext_noop("was not ready in time; nothing is charged"),
    EndReason.SPEC_REFUSED: gettext_noop("was rejected by the cluster; nothing is charged"),
    EndReason.BUDGET: gettext_noop("ended: {cause}"),
}


@dataclass(frozen=True)
class RecentEvent:
    """One recent event, with the state whose badge it shows."""

    url: str
    name: str
    text: str
    state: str
    at: datetime


def recent_events(scope: Scope, *, money: bool) -> list[RecentEvent]:
    """Return the latest events, newest first.

    Three queries, and one for invoices where the visitor may see them.
    """
    found = [*lease_events(scope), *budget_events(scope), *(invoice_events(scope) if money else [])]
    return sorted(found, key=lambda event: event.at, reverse=True)[:MAX_EVENTS]


def budget_events(scope: Scope) -> list[RecentEvent]:
    """Return the latest budget alerts as events."""
    rows = BudgetAlert.objects.select_related("budget__project").filter(tenant=scope.tenant)
    if not scope.whole:
        rows = rows.filter(budget__project__path__contains=[scope.project.pk])
    return [
        RecentEvent(
            reverse("budgets"),
            _("Budget of {project_name}").format(project_name=row.budget.project.name),
            budget_alerts.alert_text(row),
            "draft",
            row.at,
        )
        for row in rows.order_by("-at", "-pk")[:MAX_EVENTS]
    ]


def invoice_events(scope: Scope) -> list[RecentEvent]:
    """Return the latest invoice that was finalized."""
    rows = Invoice.objects.filter(tenant=scope.tenant, finalized_at__isnull=False).order_by("-finalized_at")
    return [
        RecentEvent(
            reverse("invoice", args=[invoice.pk]),
            _("Invoice {invoice}").format(invoice=invoice),
            invoice_text(invoice),
            invoice.status,
            invoice.paid_at or invoice.finalized_at or scope.tenant.created_at,
        )
        for invoice in rows[:1]
    ]


def invoice_text(invoice: Invoice) -> str:
    """Return in words what is paid, settled or due of a final invoice."""
    if invoice.paid_at and not invoice.to_pay:
        return _("is paid, {amount}").format(amount=Money(invoice.total, invoice.currency))
    if invoice.paid_at:
        return _("is paid, {amount}").format(amount=Money(invoice.to_pay, invoice.currency))
    return _("is final, {amount} due").format(amount=Money(invoice.due, invoice.currency))


def lease_events(scope: Scope) -> list[RecentEvent]:
    """Return the latest lease transitions that are worth showing."""
    steps = Transition.objects.filter(tenant_id=scope.tenant.pk)
    if not scope.whole:
        steps = steps.filter(project_id__in=scope.projects().values("pk"))
    latest = [(step, transition_text(step)) for step in steps.order_by("-xid", "-position")[:TRANSITIONS_READ]]
    described = [(step, words) for step, words in latest if words][:MAX_EVENTS]
    names = dict(Lease.objects.filter(pk__in={step.lease_id for step, _ in described}).values_list("pk", "name"))
    return [
        RecentEvent(
            reverse("lease", args=[step.lease_id]), names.get(step.lease_id, step.lease_id), words, step.after, step.at
        )
        for step, words in described
    ]


def actor_name(step: Transition) -> str:
    """Return who caused a transition; operators are not named to a tenant."""
    return _("an operator") if step.actor_kind == "staff" else step.actor_label.partition("@")[0] or step.actor_kind


def transition_text(step: Transition) -> str:
    """Describe a transition in words; empty for those that only lead to the next one."""
    by = actor_name(step)
    match S(step.after):
        case S.QUEUED if step.before == S.REQUESTED:
            return _("requested by {by}").format(by=by)
        case S.ACTIVE if step.before == S.ACTIVE and step.cause != TICK_CAUSE:
            return step.cause
        case S.STOPPING if step.reason == EndReason.BY_OPERATOR:
            return step.cause
        case S.QUEUED if step.before == S.STOPPED and step.actor_kind == "system":
            return ""  # during a relocation
        case S.QUEUED if step.before == S.STOPPED:
            return _("started again by {by}").format(by=by)
        case S.QUEUED:
            return _("queued again: {cause}").format(cause=step.cause)
        case S.PROVISIONING:
            return step.cause
        case S.ACTIVE if step.before == S.PROVISIONING:
            return _("is active")
        case S.STOPPING:
            return _("stopped by {by}; its volume is kept").format(by=by)
        case S.RELEASING:
            text = END_TEXTS.get(EndReason(step.reason), "")
            return (_(text) if text else step.cause).format(by=by, cause=step.cause)
        case S.FAILED:
            return _("failed: {cause}").format(cause=step.cause)
        case _:
            return ""
