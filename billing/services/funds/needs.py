"""What a lease can come to at most, month by month: what is charged, and what it may still cost at the prices known."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from billing.domain import holding
from billing.domain.periods import Period
from billing.models import RatedCharge
from billing.services import periods, prices, spend
from billing.services.statements import statement
from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services.leases import growing
from ports import database
from tenants.models import Tenant

MONTHS = "SELECT id, lower(span), upper(span) FROM billing_billingperiod WHERE tenant_id = %s ORDER BY span"


@dataclass(frozen=True, slots=True)
class Use:
    """What a lease was active for as far as that is over, in unit-seconds, and what of it is charged, by month."""

    used: int = 0
    charged: int = 0
    by_month: Mapping[int, int] = field(default_factory=dict)

    @property
    def uncharged(self) -> int:
        return max(self.used - self.charged, 0)


NO_USE = Use()


def uses(leases: Iterable[str]) -> dict[str, Use]:
    """Return what leases used; one query, so that no more is charged than was used. Its rows come in any order."""
    found: dict[str, Use] = {}
    for lease, seconds, month, num in database.rows(statement("lease_uses"), {"leases": list(leases)}):
        one = found.get(lease, NO_USE)
        if month is None:
            found[lease] = Use(seconds, one.charged, one.by_month)
        else:
            found[lease] = Use(one.used, one.charged + seconds, {**one.by_month, month: int(num)})
    return found


class Outlook:
    """What some leases of a tenant may still come to; months and prices are read once, however many they are."""

    def __init__(self, tenant: Tenant, leases: Iterable[Lease]) -> None:
        self._tenant = tenant
        self._promised = prices.promised(leases)
        self._months: list[tuple[int, Period]] = []
        self._prices: dict[str, list[holding.Priced]] = {}

    def needed(
        self, lease: Lease, use: Use, *, now: datetime, within: timedelta | None = None
    ) -> dict[int, int]:
        """Return by month what a lease that may still run can come to at most, charged or not; exact.

        A price that is published later, and begins before its end, is set aside at the next look. `within` says how
        far ahead is looked: of what it may still use after that, nothing is told.
        """
        uncharged = use.uncharged // lease.quantity
        if lease.active_at and lease.state == LeaseState.ACTIVE:
            end = growing.end_of(lease, lease.active_at).replace(microsecond=0)
            in_all = int((end - lease.active_at.replace(microsecond=0)).total_seconds()) + lease.spent_s
            left = max(in_all - use.charged // lease.quantity, 0)
            since = end - timedelta(seconds=left)
            if within is not None:
                left = min(left, max(-((since - now - within) // timedelta(seconds=1)), 0))
            rest = self._spread(lease, since, left, holding.spread)
        else:
            since, left = now.replace(microsecond=0), lease.max_duration_s - lease.spent_s
            if lease.end_date:
                left = min(left, max(-((since - lease.end_date) // timedelta(seconds=1)), 0))
            if within is not None:
                left = min(left, within // timedelta(seconds=1))
            rest = self._spread(lease, since, left + uncharged, holding.at_worst)
        return holding.together(use.by_month, rest)

    def pieces(self, lease: Lease) -> int:
        """Return how many prices of a lease are known, now and later: on so many lines its cost may lie at most."""
        return 1 if lease.pk in self._promised else max(len(self._prices.get(lease.offering_id, ())), 1)

    def over(self, lease: Lease, use: Use, *, now: datetime) -> dict[int, int]:
        """Return by month what a lease that runs no longer comes to: what is charged, and what is yet to be."""
        left = use.uncharged // lease.quantity
        since = now.replace(microsecond=0) - timedelta(seconds=left)
        return holding.together(use.by_month, self._spread(lease, since, left, holding.spread))

    def _spread(
        self, lease: Lease, since: datetime, seconds: int, rule: Callable[..., dict[int, int]]
    ) -> dict[int, int]:
        if seconds <= 0:
            return {}
        until = since + timedelta(seconds=seconds) + holding.LATEST_START
        months = {key: span for key, span in self._between(since, until) if span.start < until}
        priced = self._priced(lease, since)
        return rule(since, seconds, quantity=lease.quantity, prices=priced, months=months)

    def _between(self, since: datetime, until: datetime) -> Sequence[tuple[int, Period]]:
        known = self._months
        if not _tile(known, since, until):
            known = self._read()
        if not _tile(known, since, until):
            periods.ensure(self._tenant, since=since, until=until)
            known = self._read()
        self._months = known
        return [(key, span) for key, span in known if span.end > since]

    def _read(self) -> list[tuple[int, Period]]:
        return [(key, Period(start, end)) for key, start, end in database.rows(MONTHS, [self._tenant.pk])]

    def _priced(self, lease: Lease, since: datetime) -> Sequence[holding.Priced]:
        """Return the prices from a moment on: the promised one, or the tenant's own before the list's."""
        if promise := self._promised.get(lease.pk):
            return [(since, promise.nano_per_hour)]
        if lease.offering_id not in self._prices:
            self._prices[lease.offering_id] = prices.course(
                lease.offering_id, currency=self._tenant.currency, tenant=self._tenant.pk
            )
        found = self._prices[lease.offering_id]
        begun = max((n for n, (at, _) in enumerate(found) if at <= since), default=0)
        return found[begun:] or [(since, 0)]


def _tile(known: Sequence[tuple[int, Period]], since: datetime, until: datetime) -> bool:
    return bool(known) and known[0][1].start <= since and known[-1][1].end >= until


class DailyOutlook(Outlook):
    """The same by days of the tenant's own time zone, each named by its ordinal, where uses are by day, too."""

    def _between(self, since: datetime, until: datetime) -> Sequence[tuple[int, Period]]:
        zone = ZoneInfo(self._tenant.time_zone)
        begins, ends = spend.days(self._tenant.time_zone, since, until)
        return [
            (begin.astimezone(zone).toordinal(), Period(begin, end))
            for begin, end in zip(begins, ends, strict=True)
        ]


def by_day(use: Use, lease: Lease, time_zone: str) -> Use:
    """Return what a lease used with what is charged by day; one query."""
    found: dict[int, int] = {}
    zone = ZoneInfo(time_zone)
    rows = RatedCharge.objects.filter(lease_id=lease.pk).values_list("s", "e", "exact_num")
    for start, end, num in rows:
        whole = Period(start, end)
        begins, ends = spend.days(time_zone, start, end)
        for border, until in zip(begins, ends, strict=True):
            piece = Period(max(start, border), min(end, until))
            day = border.astimezone(zone).toordinal()
            found[day] = found.get(day, 0) + int(num) * piece.seconds // whole.seconds
    return Use(use.used, use.charged, found)
