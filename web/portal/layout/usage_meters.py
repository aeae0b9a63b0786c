"""Spend, burn rate and quota usage of the open project, as meters and bars."""

from calendar import month_name
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.domain.money import MINUS, exponent_of, half_up
from billing.domain.money import format_minor as written
from billing.domain.periods import Period, month_of
from billing.models import Budget
from billing.services.rating import spend
from broker.services.quotas import format_amount
from tenants.models import Project, Quota, QuotaKind
from web.portal.page_context import PageRequest, Scope

QUOTA_WORDS = {
    QuotaKind.UNITS.value: (gettext_noop("Concurrent"), gettext_noop(" units")),
    QuotaKind.GPU_SECONDS.value: (gettext_noop("This month"), gettext_noop(" unit-hours")),
    QuotaKind.BURN.value: (gettext_noop("Burn"), "/h"),
}
NANO = 10**9
FACTOR_FROM = 10  # from this ratio on, a factor is shown instead of percent
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True)
class MonthSpend:
    """This month's spend and burn rate.

    Spend is compared with the same days of last month, the burn rate with its quota.
    """

    name: str
    past: str  # the name of the month before
    day: int
    days: int
    spent: int  # minor units
    forecast: int  # minor units, at the month's end
    before: int  # minor units, the same days of last month
    burn: int  # 10⁻⁹ units per hour, now
    held: int  # 10⁻⁹ units per hour of the quota held by starting and queued leases
    ceiling: int | None  # 10⁻⁹ units per hour: the burn quota
    currency: str

    @property
    def note(self) -> str:
        return _("day {day} of {days}").format(day=self.day, days=self.days)

    @property
    def limit_note(self) -> str:
        places = exponent_of(self.currency)
        return _("of {amount}/h").format(amount=written(half_up(self.ceiling or 0, NANO // 10**places), self.currency))

    @property
    def limit_label(self) -> str:
        share = self.burn * 100 // self.ceiling if self.ceiling else 0
        return _("{share} % of the spend rate limit is running, {ceiling} % is reserved").format(
            share=share, ceiling=self.held * 100 // (self.ceiling or 1)
        )

    @property
    def change(self) -> str:
        return format_change(self.spent, self.before)


@dataclass(frozen=True)
class QuotaBar:
    """One quota as a bar, in the units it is counted in."""

    kind: str
    used: int
    limit: int
    currency: str
    set_on: str = ""  # the project that has the quota: the open one, or one above it

    @property
    def label(self) -> str:
        return _(QUOTA_WORDS[self.kind][0])

    @property
    def usage_text(self) -> str:
        return _("{used} of {limit_words}").format(used=self.amount(self.used), limit_words=self.limit_text)

    @property
    def limit_text(self) -> str:
        return f"{self.amount(self.limit)}{_(QUOTA_WORDS[self.kind][1])}"

    @property
    def free(self) -> str:
        return self.amount(max(self.limit - self.used, 0))

    def amount(self, counted: int) -> str:
        """Format an amount of the quota: money for burn, whole numbers from a hundred on."""
        if self.kind == QuotaKind.BURN:
            places = exponent_of(self.currency)
            return written(half_up(counted, NANO // 10**places), self.currency)
        text = format_amount(self.kind, counted)
        return text.partition(".")[0] if len(text.partition(".")[0]) > 2 else text

    @property
    def style(self) -> str:
        if self.used >= self.limit:
            return "fill danger"
        return "fill warning" if self.used * 10 >= self.limit * 9 else "fill"


def format_change(present: int, past: int) -> str:
    """Return the change between two amounts in percent; empty without one to compare."""
    if not past:
        return ""
    if present >= FACTOR_FROM * past:
        return f"{present // past} ×"
    tenths = (abs(present - past) * 2000 + past) // (2 * past)
    return f"{'+' if present >= past else MINUS}{tenths // 10}.{tenths % 10} %"


def format_change_against(present: int, past: int, what: str) -> str:
    """Return the change against an amount named `what`; empty without one to compare."""
    word = "" if present >= FACTOR_FROM * past else _("on ")
    return f"{format_change(present, past)} {word}{what}" if past else ""


def project_budget(scope: Scope) -> Budget | None:
    """Return the budget of the open project itself, read once per request."""
    if "budget" not in scope.known:
        scope.known["budget"] = Budget.objects.filter(project=scope.project).first()
    found: Budget | None = scope.known["budget"]
    return found


def month_spend(scope: Scope, *, now: datetime) -> int:
    """Return what the projects spent this month, in minor units."""
    if "spent" not in scope.known:
        present = month_of(scope.tenant.time_zone, now)
        scope.known["spent"] = spend.spend_between(scope.tenant, present.start, now, scope.ids)
    return int(scope.known["spent"])


def burn_rate(scope: Scope, *, now: datetime) -> int:
    """Return what active leases cost per hour, in 10⁻⁹ units."""
    if "burning" not in scope.known:
        scope.known["burning"] = spend.hourly_spend(scope.ids, scope.tenant, now=now)
    return int(scope.known["burning"])


def month_meter(request: PageRequest, bars: Sequence[QuotaBar]) -> MonthSpend:
    """Return this month's spend of the open project; query count does not grow with leases."""
    tenant, now = request.tenant, request.now
    present = month_of(tenant.time_zone, now)
    past = month_of(tenant.time_zone, present.start - HOUR)
    here = now.astimezone(ZoneInfo(tenant.time_zone))
    ids = request.scope.ids
    # Only a quota of this project is comparable: the use of one above it is mostly other projects' burn.
    own = [bar for bar in bars if bar.set_on == request.project.pk]
    ceiling = next((bar for bar in own if bar.kind == QuotaKind.BURN), None)
    burn = burn_rate(request.scope, now=now)
    return MonthSpend(
        name=month_name[here.month],
        past=month_name[(here.month - 2) % 12 + 1],
        day=here.day,
        days=(present.end - present.start + DAY / 2) // DAY,
        spent=month_spend(request.scope, now=now),
        forecast=spend.spend_by_month_end(tenant, now=now, projects=ids),
        before=spend.spend_between(tenant, past.start, same_moment_in(past, now - present.start), ids),
        burn=burn,
        held=max(ceiling.used - burn, 0) if ceiling else 0,
        ceiling=ceiling.limit if ceiling else None,
        currency=tenant.currency,
    )


def same_moment_in(past: Period, length: timedelta) -> datetime:
    """Return the moment as far into the past month, to the whole second."""
    return min(past.start + length, past.end).replace(microsecond=0)


def quota_bars(project: Project, *, now: datetime, currency: str) -> list[QuotaBar]:
    """Return the tightest quota of each kind on the project's path; one query."""
    tightest: dict[str, QuotaBar] = {}
    for quota in Quota.objects.filter(project_id__in=project.path).order_by("kind", "pk"):
        bar = QuotaBar(quota.kind, quota.used_at(now), quota.soft_limit, currency, quota.project_id)
        if bar.kind not in tightest or bar.limit - bar.used < tightest[bar.kind].limit - tightest[bar.kind].used:
            tightest[bar.kind] = bar
    return [tightest[kind] for kind in QUOTA_WORDS if kind in tightest]
