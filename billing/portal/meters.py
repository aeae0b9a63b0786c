"""The money and the quotas that stand beside every thing: this month's spend, the burn, what is free."""

from calendar import month_name
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from billing.domain.money import MINUS, exponent_of, half_up
from billing.domain.money import shown as written
from billing.domain.periods import Period, month_of
from billing.models import Budget
from billing.portal.pages import PageRequest, Scope
from billing.services import spend
from broker.services.quotas import shown
from tenants.models import Project, Quota, QuotaKind

WORDS = {
    QuotaKind.UNITS.value: ("At once", " units"),
    QuotaKind.GPU_SECONDS.value: ("This month", " unit-hours"),
    QuotaKind.BURN.value: ("Burn", "/h"),
}
NANO = 10**9
MANY = 10  # from so many times on percents say nothing
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True)
class Month:
    """What has been spent this month, against last month's same stretch, and the burn against its quota."""

    name: str
    past: str  # the month before
    day: int
    days: int
    spent: int  # minor units
    before: int  # minor units, the same stretch of last month
    burn: int  # 10⁻⁹ units per hour, now
    held: int  # 10⁻⁹ units per hour that starting and waiting leases have taken of the quota already
    ceiling: int | None  # 10⁻⁹ units per hour: the burn quota
    currency: str

    @property
    def note(self) -> str:
        return f"day {self.day} of {self.days}"

    @property
    def ring_note(self) -> str:
        places = exponent_of(self.currency)
        return f"of {written(half_up(self.ceiling or 0, NANO // 10**places), self.currency)}/h"

    @property
    def ring_words(self) -> str:
        share = self.burn * 100 // self.ceiling if self.ceiling else 0
        return f"{share} % of the burn quota is running, {self.held * 100 // (self.ceiling or 1)} % is held"

    @property
    def change(self) -> str:
        return changed(self.spent, self.before)


@dataclass(frozen=True)
class Bar:
    """One quota as a bar, in the units it is counted in."""

    kind: str
    used: int
    limit: int
    currency: str
    set_on: str = ""  # the project: the open one, or one above it

    @property
    def label(self) -> str:
        return WORDS[self.kind][0]

    @property
    def words(self) -> str:
        return f"{self.amount(self.used)} of {self.limit_words}"

    @property
    def limit_words(self) -> str:
        return f"{self.amount(self.limit)}{WORDS[self.kind][1]}"

    @property
    def free(self) -> str:
        return self.amount(max(self.limit - self.used, 0))

    def amount(self, counted: int) -> str:
        """Write an amount: money for the burn, whole numbers from a hundred on."""
        if self.kind == QuotaKind.BURN:
            places = exponent_of(self.currency)
            return written(half_up(counted, NANO // 10**places), self.currency)
        text = shown(self.kind, counted)
        return text.partition(".")[0] if len(text.partition(".")[0]) > 2 else text

    @property
    def style(self) -> str:
        if self.used >= self.limit:
            return "fill bad"
        return "fill wait" if self.used * 10 >= self.limit * 9 else "fill"


def changed(present: int, past: int) -> str:
    """Write by how much an amount differs from another, in percent; nothing without one to compare with."""
    if not past:
        return ""
    if present >= MANY * past:
        return f"{present // past} ×"
    tenths = (abs(present - past) * 2000 + past) // (2 * past)
    return f"{'+' if present >= past else MINUS}{tenths // 10}.{tenths % 10} %"


def against(present: int, past: int, what: str) -> str:
    """Say how an amount stands to that of `what`; nothing without one to compare with."""
    word = "" if present >= MANY * past else "on "
    return f"{changed(present, past)} {word}{what}" if past else ""


def budget(scope: Scope) -> Budget | None:
    """Return the budget of the open project itself, read once."""
    if "budget" not in scope.known:
        scope.known["budget"] = Budget.objects.filter(project=scope.project).first()
    found: Budget | None = scope.known["budget"]
    return found


def spent(scope: Scope, *, now: datetime) -> int:
    """Return what the projects spent this month, in minor units."""
    if "spent" not in scope.known:
        present = month_of(scope.tenant.time_zone, now)
        scope.known["spent"] = spend.between(scope.tenant, present.start, now, scope.ids)
    return int(scope.known["spent"])


def burning(scope: Scope, *, now: datetime) -> int:
    """Return what is active costs per hour, in 10⁻⁹ units."""
    if "burning" not in scope.known:
        scope.known["burning"] = spend.burning(scope.ids, scope.tenant, now=now)
    return int(scope.known["burning"])


def month(request: PageRequest, bars: Sequence[Bar]) -> Month:
    """Return this month's money of the open project; constant in the number of leases."""
    tenant, now = request.tenant, request.now
    present = month_of(tenant.time_zone, now)
    past = month_of(tenant.time_zone, present.start - HOUR)
    here = now.astimezone(ZoneInfo(tenant.time_zone))
    ids = request.scope.ids
    # Beside what burns here stands a ceiling of here: the use of one from above is mostly what others burn.
    own = [bar for bar in bars if bar.set_on == request.project.pk]
    ceiling = next((bar for bar in own if bar.kind == QuotaKind.BURN), None)
    burn = burning(request.scope, now=now)
    return Month(
        name=month_name[here.month],
        past=month_name[(here.month - 2) % 12 + 1],
        day=here.day,
        days=(present.end - present.start + DAY / 2) // DAY,
        spent=spent(request.scope, now=now),
        before=spend.between(tenant, past.start, same_stretch(past, now - present.start), ids),
        burn=burn,
        held=max(ceiling.used - burn, 0) if ceiling else 0,
        ceiling=ceiling.limit if ceiling else None,
        currency=tenant.currency,
    )


def same_stretch(past: Period, length: timedelta) -> datetime:
    """Return how far into the past month its first days go that are as long; usage is counted to the second."""
    return min(past.start + length, past.end).replace(microsecond=0)


def quotas(project: Project, *, now: datetime, currency: str) -> list[Bar]:
    """Return the tightest quota of each kind on the project's path; one query."""
    tightest: dict[str, Bar] = {}
    for quota in Quota.objects.filter(project_id__in=project.path).order_by("kind", "pk"):
        bar = Bar(quota.kind, quota.used_at(now), quota.soft_limit, currency, quota.project_id)
        if (
            bar.kind not in tightest
            or bar.limit - bar.used < tightest[bar.kind].limit - tightest[bar.kind].used
        ):
            tightest[bar.kind] = bar
    return [tightest[kind] for kind in WORDS if kind in tightest]
