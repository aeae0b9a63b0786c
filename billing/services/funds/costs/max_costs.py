"""Maximum cost of a lease by month: charged, plus possible cost at known prices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from billing.domain import lease_holds
from billing.domain.periods import Period
from billing.models import RatedCharge
from billing.services.catalogue import price_list
from billing.services.periods import billing_periods
from billing.services.rating import spend
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.leases.lifecycle import extension
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql
from tenants.models import Tenant

MONTHS_SQL = "SELECT id, lower(span), upper(span) FROM billing_billingperiod WHERE tenant_id = %s ORDER BY span"


@dataclass(frozen=True, slots=True)
class LeaseUsage:
    """Past active unit-seconds of a lease, and the charged part by month."""

    used: int = 0
    charged: int = 0
    by_month: Mapping[int, int] = field(default_factory=dict)

    @property
    def uncharged(self) -> int:
        return max(self.used - self.charged, 0)


NO_USAGE = LeaseUsage()


def lease_usages(leases: Iterable[str]) -> dict[str, LeaseUsage]:
    """Return the usage of leases, in any order.

    One query, so that no more is charged than was used.
    """
    found: dict[str, LeaseUsage] = {}
    for lease, seconds, month, num in sql_statements.fetch_rows(
        load_sql("billing/funds/lease_usage"), {"leases": list(leases)}
    ):
        one = found.get(lease, NO_USAGE)
        if month is None:
            found[lease] = LeaseUsage(seconds, one.charged, one.by_month)
        else:
            found[lease] = LeaseUsage(one.used, one.charged + seconds, {**one.by_month, month: int(num)})
    return found


class MaxCost:
    """Possible future cost of a tenant's leases; months and prices are read once."""

    def __init__(self, tenant: Tenant, leases: Iterable[Lease]) -> None:
        self._tenant = tenant
        self._promised = price_list.quoted_prices(leases)
        self._months: list[tuple[int, Period]] = []
        self._prices: dict[str, list[lease_holds.PricePoint]] = {}

    def needed(
        self, lease: Lease, use: LeaseUsage, *, now: datetime, within: timedelta | None = None
    ) -> dict[int, int]:
        """Return by month the maximum cost of a lease that may still run; exact.

        It includes what is charged. A price that is published later and begins before the lease ends is
        reserved at the next check. `within` limits how far ahead is looked; what it may use after that is
        not included.
        """
        uncharged = use.uncharged // lease.quantity
        if lease.active_at and lease.state == LeaseState.ACTIVE:
            end = extension.end_when_active_from(lease, lease.active_at).replace(microsecond=0)
            in_all = int((end - lease.active_at.replace(microsecond=0)).total_seconds()) + lease.active_seconds
            left = max(in_all - use.charged // lease.quantity, 0)
            since = end - timedelta(seconds=left)
            if within is not None:
                left = min(left, max(-((since - now - within) // timedelta(seconds=1)), 0))
            rest = self._spread(lease, since, left, lease_holds.cost_by_month)
        else:
            since = max(now, lease.starts_at or now).replace(microsecond=0)
            left = lease_holds.most_seconds(
                lease.max_duration_s - lease.active_seconds, since=since, end_date=lease.end_date
            )
            if within is not None:
                left = min(left, within // timedelta(seconds=1))
            rest = self._spread(lease, since, left + uncharged, lease_holds.max_cost_by_month)
        return lease_holds.sum_by_month(use.by_month, rest)

    def pieces(self, lease: Lease) -> int:
        """Return the number of price versions that can apply.

        It is the maximum number of invoice lines for the lease's cost.
        """
        return 1 if lease.pk in self._promised else max(len(self._prices.get(lease.offering_id, ())), 1)

    def over(self, lease: Lease, use: LeaseUsage, *, now: datetime) -> dict[int, int]:
        """Return by month the cost of an ended lease, charged and still to be charged."""
        left = use.uncharged // lease.quantity
        since = now.replace(microsecond=0) - timedelta(seconds=left)
        return lease_holds.sum_by_month(use.by_month, self._spread(lease, since, left, lease_holds.cost_by_month))

    def _spread(
        self, lease: Lease, since: datetime, seconds: int, rule: Callable[..., dict[int, int]]
    ) -> dict[int, int]:
        if seconds <= 0:
            return {}
        until = since + timedelta(seconds=seconds) + lease_holds.MAX_START_DELAY
        months = {key: span for key, span in self._between(since, until) if span.start < until}
        priced = self._priced(lease, since)
        return rule(since, seconds, quantity=lease.quantity, prices=priced, months=months)

    def _between(self, since: datetime, until: datetime) -> Sequence[tuple[int, Period]]:
        known = self._months
        if not _cover(known, since, until):
            known = self._read()
        if not _cover(known, since, until):
            billing_periods.ensure_periods(self._tenant, since=since, until=until)
            known = self._read()
        self._months = known
        return [(key, span) for key, span in known if span.end > since]

    def _read(self) -> list[tuple[int, Period]]:
        return [
            (key, Period(start, end)) for key, start, end in sql_statements.fetch_rows(MONTHS_SQL, [self._tenant.pk])
        ]

    def _priced(self, lease: Lease, since: datetime) -> Sequence[lease_holds.PricePoint]:
        """Return the prices from a moment on: the quote's, the tenant's own, or the list's."""
        if promise := self._promised.get(lease.pk):
            return [(since, promise.nano_per_hour)]
        found = self.price_points(lease)
        begun = max((n for n, (at, _) in enumerate(found) if at <= since), default=0)
        return found[begun:] or [(since, 0)]

    def price_points(self, lease: Lease) -> Sequence[lease_holds.PricePoint]:
        """Return the tenant's prices of a lease's offering; read once."""
        if lease.offering_id not in self._prices:
            self._prices[lease.offering_id] = price_list.price_history(
                lease.offering_id, currency=self._tenant.currency, tenant=self._tenant.pk
            )
        return self._prices[lease.offering_id]


def _cover(known: Sequence[tuple[int, Period]], since: datetime, until: datetime) -> bool:
    return bool(known) and known[0][1].start <= since and known[-1][1].end >= until


class DailyMaxCost(MaxCost):
    """The same by local days, keyed by their ordinal; usage must be by day too."""

    def _between(self, since: datetime, until: datetime) -> Sequence[tuple[int, Period]]:
        zone = ZoneInfo(self._tenant.time_zone)
        begins, ends = spend.local_days(self._tenant.time_zone, since, until)
        return [
            (begin.astimezone(zone).toordinal(), Period(begin, end)) for begin, end in zip(begins, ends, strict=True)
        ]


def usage_by_day(use: LeaseUsage, lease: Lease, time_zone: str) -> LeaseUsage:
    """Return a lease's usage with charges by day; one query."""
    found: dict[int, int] = {}
    zone = ZoneInfo(time_zone)
    rows = RatedCharge.objects.filter(lease_id=lease.pk).values_list("s", "e", "exact_num")
    for start, end, num in rows:
        whole = Period(start, end)
        begins, ends = spend.local_days(time_zone, start, end)
        for boundary, until in zip(begins, ends, strict=True):
            piece = Period(max(start, boundary), min(end, until))
            day = boundary.astimezone(zone).toordinal()
            found[day] = found.get(day, 0) + int(num) * piece.seconds // whole.seconds
    return LeaseUsage(use.used, use.charged, found)
