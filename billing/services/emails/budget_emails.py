"""Budget e-mails to project leaders and to owners and billing members."""

from datetime import datetime

from django.db.models import Q

from billing.domain.budgets import BudgetMeasure, StopScope
from billing.domain.money import Money
from billing.models import Budget, BudgetAlert, BudgetStop, QueuedEmail
from billing.services.notifications.email_message import OutgoingEmail, format_local_time, portal_link
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Member, Project

ALERT = """{what} of the {limit} that {project} may cost in {month}: {percent} % of its budget.

{then}

See the spend per lease:
{link}
"""
FORECAST = (
    "The forecast counts the spend so far and the running leases until they end or the month ends, at current prices."
    " New leases are not included."
)
STOP = """{project} has spent {spent} of its budget of {limit} for {month}.
The budget reached {percent} %:
{deed}.

This happens at {moment} unless the budget is raised or the month ends before then. {rest}

Raise the budget or see the running leases:
{link}
"""
STOP_ACTIONS = {
    StopScope.ALL: "all running and queued leases of the project are ended",
    StopScope.IDLE: "leases that were idle for 15 minutes are ended",
}
STOP_NOTES = {
    StopScope.ALL: "Until then no new leases start. Volumes are kept.",
    StopScope.IDLE: "Leases in use continue. After that, idle leases are checked every minute until the month ends.",
}
STOP_CANCELLED = """The stop announced for {moment} was cancelled: the budget of {project} was changed to {limit},
and the spend of {spent} is below the percentage at which {deed}.

{link}
"""
STOPPED = """The budget of {project} for {month} reached {percent} % and was not raised after the warning. {leases}
ended at {moment}. Volumes are kept. No new leases start until the budget is raised or the next month begins.

See the leases:
{link}
"""
REMOVED = """{who} removed the budget of {project}. Cancelled: {off}.

Budgets of parent projects still apply.

See the budgets and the running leases:
{link}
"""


def write_budget_alert(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail about a budget threshold that is reached or forecast."""
    rows = BudgetAlert.objects.select_related("budget__project__tenant", "period")
    found = rows.filter(pk=email.subject_id).first()
    if found is None:
        return None
    budget, amount = found.budget, Money(found.minor, found.budget.currency)
    forecast = found.measure == BudgetMeasure.FORECAST
    what = f"The month is forecast to end at {amount}" if forecast else f"{amount} is spent"
    comes = "is forecast to reach" if forecast else "reached"
    return OutgoingEmail(
        budget_recipients(budget),
        f"The budget of {budget.project.name} {comes} {found.percent} %",
        ALERT.format(
            what=what,
            limit=Money(found.limit_minor, budget.currency),
            project=budget.project.name,
            month=month_name(found),
            percent=found.percent,
            then=FORECAST if forecast else describe_thresholds(budget),
            link=portal_link("budgets/"),
        ),
    )


def write_stop_announcement(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail that announces a stop and its time."""
    found = _find_stop(email)
    if found is None or found.lifted_at is not None:
        return None  # cancelled before this was sent: the other e-mail reports that
    what = StopScope(found.what)
    head = "All leases" if what is StopScope.ALL else "Idle leases"
    return OutgoingEmail(
        budget_recipients(found.budget),
        f"{head} in {found.budget.project.name} will be ended at {format_stop_time(found)}",
        STOP.format(deed=STOP_ACTIONS[what], rest=STOP_NOTES[what], percent=found.percent, **_stop_values(found)),
    )


def write_stop_cancelled(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail that a stop is cancelled."""
    found = _find_stop(email)
    if found is None or found.done_at is not None:
        return None  # the stop happened: whoever raised the budget afterwards knows
    deed = STOP_ACTIONS[StopScope(found.what)]
    return OutgoingEmail(
        budget_recipients(found.budget),
        f"Budget stop cancelled in {found.budget.project.name}",
        STOP_CANCELLED.format(
            deed=deed, **{**_stop_values(found), "limit": Money(found.budget.limit_minor, found.budget.currency)}
        ),
    )


def write_budget_removed(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail that announced stops are cancelled because the budget was removed.

    The announcement is read from the audit log.
    """
    event = AuditEvent.objects.filter(action="budget.remove", subject_id=email.subject_id).first()
    project = Project.objects.filter(pk=event.detail["project"]).first() if event else None
    if event is None or project is None:
        return None
    return OutgoingEmail(
        project_recipients(project),
        f"Budget of {project.name} removed, stop cancelled",
        REMOVED.format(
            project=project.name, who=event.actor_label, off=event.detail["cancelled"], link=portal_link("budgets/")
        ),
    )


def write_leases_ended(email: QueuedEmail, now: datetime) -> OutgoingEmail | None:
    """Write the e-mail that all leases were ended."""
    found = _find_stop(email)
    if found is None or found.done_at is None:
        return None
    leases = f"{found.ended} lease{'' if found.ended == 1 else 's'} {'was' if found.ended == 1 else 'were'}"
    values = {**_stop_values(found), "moment": format_local_time(found.done_at, found.budget.project.tenant.time_zone)}
    return OutgoingEmail(
        budget_recipients(found.budget),
        f"{leases} ended: the budget of {found.budget.project.name} is exhausted",
        STOPPED.format(leases=leases, percent=found.percent, **values),
    )


def budget_recipients(budget: Budget) -> list[str]:
    """Return the recipients for a budget: its project's leaders, owners and billing members."""
    return project_recipients(budget.project)


def project_recipients(project: Project) -> list[str]:
    members = Member.objects.filter(tenant=project.tenant_id, user__is_active=True)
    wide = Q(project=None, role__in=[Role.OWNER, Role.ADMIN, Role.BILLING])
    near = Q(project__in=project.path, role__in=[Role.OWNER, Role.ADMIN])
    return sorted(set(members.filter(wide | near).values_list("user__email", flat=True)))


def describe_thresholds(budget: Budget) -> str:
    """Describe what happens at which percentage of a budget."""
    terms, sentences = budget.terms, []
    if terms.stop_new_at is None:
        sentences.append("The limit blocks nothing: new leases can still start.")
    else:
        sentences.append(f"At {terms.stop_new_at} %, including reservations, new leases that exceed it are refused.")
    for what, share in ((StopScope.IDLE, terms.stop_idle_at), (StopScope.ALL, terms.stop_all_at)):
        if share is not None:
            sentences.append(
                f"At {share} % {STOP_ACTIONS[what]}, {terms.grace_minutes} minutes after an e-mail like this."
            )
    return " ".join(sentences)


def month_name(of: BudgetAlert | BudgetStop) -> str:
    return f"{datetime.fromisoformat(of.period.label + '-01'):%B %Y}"


def format_stop_time(of: BudgetStop) -> str:
    return format_local_time(of.due_at, of.budget.project.tenant.time_zone)


def _find_stop(email: QueuedEmail) -> BudgetStop | None:
    rows = BudgetStop.objects.select_related("budget__project__tenant", "period")
    return rows.filter(pk=email.subject_id).first()


def _stop_values(found: BudgetStop) -> dict[str, object]:
    budget = found.budget
    return {
        "spent": Money(found.minor, budget.currency),
        "limit": Money(found.limit_minor, budget.currency),
        "project": budget.project.name,
        "month": month_name(found),
        "moment": format_stop_time(found),
        "link": portal_link("budgets/"),
    }
