"""Letters about budgets, to those who lead or pay for what they are on."""

from datetime import datetime

from django.db.models import Q

from billing.domain.money import Money
from billing.domain.watching import Measure, StopOf
from billing.models import Budget, BudgetAlert, BudgetStop, Letter
from billing.services.post.written import Written, clock_of, link
from tenants.domain.roles import Role
from tenants.models import AuditEvent, Member, Project

ALERT = """{what} of the {limit} that {project} may cost in {month}: {percent} % of its budget.

{then}

See what is spent and by which leases:
{link}
"""
FORECAST = (
    "That is what is spent, and what runs now until its own end or the month's, at the prices known today. Nothing"
    " that may still begin is in it."
)
STOP = """{spent} of the {limit} that {project} may cost in {month} are spent: {percent} % of its budget, at which
{deed}.

That happens at {moment}, unless its budget is raised before then or the month ends. {rest}

Raise it, or see what runs:
{link}
"""
DEEDS = {
    StopOf.ALL: "all that runs or waits there is ended",
    StopOf.IDLE: "leases are ended of which nothing has run for a quarter of an hour",
}
RESTS = {
    StopOf.ALL: "Until then nothing new begins there. Volumes are kept.",
    StopOf.IDLE: "Leases that are ready go on. From then on it is looked at each minute until the month ends.",
}
OFF = """What was to be stopped at {moment} goes on: the budget of {project} was changed, and {spent} of {limit} is less
than the share at which {deed}.

{link}
"""
STOPPED = """The budget of {project} for {month} was at {percent} % when you were told, and nobody raised it: {leases}
ended at {moment}. Volumes are kept, and nothing new begins there until the budget is raised or the next month begins.

See what ran:
{link}
"""
REMOVED = """The budget of {project} was removed by {who}. What it was to stop goes on: {off}.

Budgets above it still hold, and stop what they say.

See them, and what runs:
{link}
"""


def alert(letter: Letter, now: datetime) -> Written | None:
    """Say which share of a budget is spent, or will be."""
    rows = BudgetAlert.objects.select_related("budget__project__tenant", "period")
    found = rows.filter(pk=letter.about).first()
    if found is None:
        return None
    budget, amount = found.budget, Money(found.minor, found.budget.currency)
    forecast = found.measure == Measure.FORECAST
    what = f"By the end of it this will come to {amount}" if forecast else f"{amount} are spent"
    comes = "is forecast to come" if forecast else "has come"
    return Written(
        concerned(budget),
        f"The budget of {budget.project.name} {comes} to {found.percent} %",
        ALERT.format(
            what=what,
            limit=Money(found.limit_minor, budget.currency),
            project=budget.project.name,
            month=month(found),
            percent=found.percent,
            then=FORECAST if forecast else then(budget),
            link=link("budgets/"),
        ),
    )


def stop(letter: Letter, now: datetime) -> Written | None:
    """Say what is to be stopped, and when."""
    found = _stop(letter)
    if found is None or found.lifted_at is not None:
        return None  # called off before this was sent: of that the other letter tells
    what = StopOf(found.what)
    head = "Everything" if what is StopOf.ALL else "What is idle"
    return Written(
        concerned(found.budget),
        f"{head} in {found.budget.project.name} is stopped at {moment(found)}",
        STOP.format(deed=DEEDS[what], rest=RESTS[what], percent=found.percent, **_told(found)),
    )


def called_off(letter: Letter, now: datetime) -> Written | None:
    """Say that a stop is not made."""
    found = _stop(letter)
    if found is None or found.done_at is not None:
        return None  # it was made: whoever raised the budget afterwards knows
    deed = DEEDS[StopOf(found.what)]
    return Written(
        concerned(found.budget),
        f"Nothing more is stopped in {found.budget.project.name}",
        OFF.format(
            deed=deed, **{**_told(found), "limit": Money(found.budget.limit_minor, found.budget.currency)}
        ),
    )


def removed(letter: Letter, now: datetime) -> Written | None:
    """Say that what was announced is off, for its budget is gone; what that said stands in the trail."""
    event = AuditEvent.objects.filter(action="budget.remove", subject_id=letter.about).first()
    project = Project.objects.filter(pk=event.detail["project"]).first() if event else None
    if event is None or project is None:
        return None
    return Written(
        leaders(project),
        f"Nothing more is stopped in {project.name}: its budget is gone",
        REMOVED.format(
            project=project.name, who=event.actor_label, off=event.detail["called off"], link=link("budgets/")
        ),
    )


def stopped(letter: Letter, now: datetime) -> Written | None:
    """Say that all was ended."""
    found = _stop(letter)
    if found is None or found.done_at is None:
        return None
    leases = f"{found.ended} lease{'' if found.ended == 1 else 's'} {'was' if found.ended == 1 else 'were'}"
    told = {**_told(found), "moment": clock_of(found.done_at, found.budget.project.tenant.time_zone)}
    return Written(
        concerned(found.budget),
        f"{leases} ended: the budget of {found.budget.project.name} is used up",
        STOPPED.format(leases=leases, percent=found.percent, **told),
    )


def concerned(budget: Budget) -> list[str]:
    """Return who leads what a budget is on, and who owns or pays for the tenant."""
    return leaders(budget.project)


def leaders(project: Project) -> list[str]:
    members = Member.objects.filter(tenant=project.tenant_id, user__is_active=True)
    wide = Q(project=None, role__in=[Role.OWNER, Role.ADMIN, Role.BILLING])
    near = Q(project__in=project.path, role__in=[Role.OWNER, Role.ADMIN])
    return sorted(set(members.filter(wide | near).values_list("user__email", flat=True)))


def then(budget: Budget) -> str:
    """Say what follows at which share of a budget."""
    terms, said = budget.terms, []
    if terms.stop_new_at is None:
        said.append("Nothing stops at its limit: leases begin beyond it, too.")
    else:
        said.append(
            f"At {terms.stop_new_at} %, counting what is set aside, no lease begins that it has no room for."
        )
    for what, share in ((StopOf.IDLE, terms.stop_idle_at), (StopOf.ALL, terms.stop_all_at)):
        if share is not None:
            said.append(
                f"At {share} % {DEEDS[what]}, {terms.grace_minutes} minutes after a letter like this."
            )
    return " ".join(said)


def month(of: BudgetAlert | BudgetStop) -> str:
    return f"{datetime.fromisoformat(of.period.label + '-01'):%B %Y}"


def moment(of: BudgetStop) -> str:
    return clock_of(of.due_at, of.budget.project.tenant.time_zone)


def _stop(letter: Letter) -> BudgetStop | None:
    rows = BudgetStop.objects.select_related("budget__project__tenant", "period")
    return rows.filter(pk=letter.about).first()


def _told(found: BudgetStop) -> dict[str, object]:
    budget = found.budget
    return {
        "spent": Money(found.minor, budget.currency),
        "limit": Money(found.limit_minor, budget.currency),
        "project": budget.project.name,
        "month": month(found),
        "moment": moment(found),
        "link": link("budgets/"),
    }
