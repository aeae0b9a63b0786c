"""Lease rating: charge all usage that ended since the last run, in one statement."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import DatabaseError, OperationalError, connection, transaction

from billing.models import BillingRun
from billing.models.prices import list_rate_card
from billing.services.periods import billing_periods
from ports.postgres.sql_statements import load_sql
from tenants.models import Tenant
from tenants.services.rls import system_scope, tenant_scope

MAX_GAPS_SHOWN = 5
# The planner cannot know how much usage is new, and the wrong plan takes a minute instead of a second:
# a few rows are found through indexes, however large the tables are; a month's usage is read in one pass.
BULK_THRESHOLD = 50_000
MAX_BATCH_INTERVALS = 250_000
INDEX_PLAN = {"jit": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
BULK_PLAN = {
    "jit": "off",
    "enable_nestloop": "off",
    "enable_mergejoin": "off",
    "max_parallel_workers_per_gather": "0",
    "work_mem": "'128MB'",
}


@dataclass(frozen=True, slots=True)
class UnratedInterval:
    """Billable unit-seconds that no price version or no month covers."""

    tenant: str
    lease: str
    seq: int
    offering: str
    currency: str
    since: datetime
    until: datetime
    unit_seconds: int

    def __str__(self) -> str:
        return (
            f"{self.lease} from {self.since.isoformat()} to {self.until.isoformat()}:"
            f" {self.unit_seconds} unit-seconds of {self.offering} in {self.currency}"
        )


class PriceGap(Exception):
    """Some usage has no price: nothing of its tenant is charged until that is fixed."""

    def __init__(self, gaps: tuple[UnratedInterval, ...]) -> None:
        self.gaps = gaps
        listed = "; ".join(str(gap) for gap in gaps[:MAX_GAPS_SHOWN])
        more = f" and {len(gaps) - MAX_GAPS_SHOWN} more" if len(gaps) > MAX_GAPS_SHOWN else ""
        super().__init__(
            f"There is no price or month for {listed}{more}. New usage of this tenant is not charged."
            " Publish a price that starts where the gap starts; the next run charges it."
        )


class UsageNotCovered(Exception):
    """Total charges differ from total usage; the statement must be rolled back."""


@dataclass(frozen=True, slots=True)
class UnratedTenant:
    """A tenant with uncharged usage, and the time that it spans."""

    tenant: str
    stretches: int
    first: datetime
    last: datetime
    tiled: bool


@dataclass(frozen=True, slots=True)
class RatingFailure:
    """A tenant whose usage PostgreSQL refuses to charge, and the error.

    Nothing of it is lost.
    """

    tenant: str
    why: str


@dataclass(frozen=True, slots=True)
class RatingOutcome:
    """Result of a run: charges written, tenants charged, price gaps and failures."""

    written: int = 0
    unit_seconds: int = 0
    tenants: tuple[str, ...] = ()
    gaps: tuple[UnratedInterval, ...] = ()
    broken: tuple[RatingFailure, ...] = ()

    def __add__(self, other: "RatingOutcome") -> "RatingOutcome":
        return RatingOutcome(
            self.written + other.written,
            self.unit_seconds + other.unit_seconds,
            self.tenants + other.tenants,
            self.gaps + other.gaps,
            self.broken + other.broken,
        )


def rate_all_leases(*, now: datetime, whole: bool = False) -> RatingOutcome:
    """Charge every tenant's new usage; a failure blocks only its own tenant.

    A failure is a price gap, or rows that PostgreSQL refuses. `whole` ignores the watermarks and
    examines everything again, which writes nothing that is already there.
    """
    with system_scope():
        changed_tenants = _unrated_tenants(whole=whole)
    if not changed_tenants:
        return RatingOutcome()
    run, rate_card, outcome = rating_run_at(now), list_rate_card().pk, RatingOutcome()
    for batch in _split_backlog(changed_tenants):
        outcome += _charge_or_split(batch, run=run, rate_card=rate_card, whole=whole)
    return outcome


def rate_tenant_leases(tenant: Tenant, *, now: datetime) -> RatingOutcome:
    """Charge one tenant's new usage in its RLS scope, or raise PriceGap.

    No other run charges anything until the surrounding transaction is over, even if there is nothing to
    charge: closing a month relies on it.
    """
    with tenant_scope(tenant.pk):
        billing_periods.take_tenant_billing_locks([tenant.pk])
        changed_tenants = _unrated_tenants(whole=False, tenants=[tenant.pk])
        if not changed_tenants:
            return RatingOutcome()
        _ensure_periods(changed_tenants)
        rate_card = list_rate_card().pk
        try:
            return _charge_usage(changed_tenants, run=rating_run_at(now), rate_card=rate_card, whole=False)
        except UsageNotCovered:
            raise PriceGap(_find_gaps(changed_tenants, whole=False)) from None


def rate_leases_of(tenants: Collection[str], *, run: int) -> set[str]:
    """Charge these tenants' new usage together; return those not fully charged.

    Call in their batch scope. As with `rate_tenant_leases`, nobody else charges until the surrounding
    transaction is over.
    """
    billing_periods.take_tenant_billing_locks(tenants)
    changed_tenants = _unrated_tenants(whole=False, tenants=list(tenants))
    left = {one.tenant for one in changed_tenants if not one.tiled}
    if changed_tenants := [one for one in changed_tenants if one.tiled]:
        rate_card = list_rate_card().pk
        outcome = _charge_all_but_gaps(changed_tenants, run=run, rate_card=rate_card, whole=False)
        left |= {gap.tenant for gap in outcome.gaps}
    return left


def _charge_or_split(changed_tenants: list[UnratedTenant], *, run: int, rate_card: int, whole: bool) -> RatingOutcome:
    """Charge tenants together; halve the batch on an error until the culprit is alone."""
    try:
        _ensure_periods(changed_tenants)
        return _charge_all_but_gaps(changed_tenants, run=run, rate_card=rate_card, whole=whole)
    except OperationalError:
        raise  # the server is unavailable or busy: no tenant's rows are to blame, and the next run comes soon
    except DatabaseError as error:
        if len(changed_tenants) == 1:
            return RatingOutcome(broken=(RatingFailure(changed_tenants[0].tenant, str(error).strip()),))
    half = len(changed_tenants) // 2
    first, second = changed_tenants[:half], changed_tenants[half:]
    charged = _charge_or_split(first, run=run, rate_card=rate_card, whole=whole)
    return charged + _charge_or_split(second, run=run, rate_card=rate_card, whole=whole)


def _charge_all_but_gaps(
    changed_tenants: list[UnratedTenant], *, run: int, rate_card: int, whole: bool
) -> RatingOutcome:
    try:
        with system_scope():
            return _charge_usage(changed_tenants, run=run, rate_card=rate_card, whole=whole)
    except UsageNotCovered:
        with system_scope():
            gaps = _find_gaps(changed_tenants, whole=whole)
            held = {gap.tenant for gap in gaps}
            rest = [one for one in changed_tenants if one.tenant not in held]
            outcome = _charge_usage(rest, run=run, rate_card=rate_card, whole=whole) if rest else RatingOutcome()
        return replace(outcome, gaps=gaps)


def _split_backlog(changed_tenants: list[UnratedTenant]) -> Iterator[list[UnratedTenant]]:
    """Split a backlog into batches that one statement can charge in time.

    A tenant is never split.
    """
    batch: list[UnratedTenant] = []
    size = 0
    for one in changed_tenants:
        if batch and size + one.stretches > MAX_BATCH_INTERVALS:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.stretches
    yield batch


def _unrated_tenants(*, whole: bool, tenants: list[str] | None = None) -> list[UnratedTenant]:
    with _planned_cursor(INDEX_PLAN) as cursor:
        cursor.execute(load_sql("billing/rating/new_usage"), {"whole": whole, "tenants": tenants})
        return [UnratedTenant(*row) for row in cursor.fetchall()]


def _ensure_periods(changed_tenants: list[UnratedTenant]) -> None:
    """Create missing months, once a month for each tenant with usage."""
    for one in changed_tenants:
        if not one.tiled:
            with tenant_scope(one.tenant):
                billing_periods.ensure_periods(Tenant.objects.get(pk=one.tenant), since=one.first, until=one.last)


def _charge_usage(changed_tenants: list[UnratedTenant], *, run: int, rate_card: int, whole: bool) -> RatingOutcome:
    tenants = [one.tenant for one in changed_tenants]
    values = {
        "tenants": tenants,
        "first": min(one.first for one in changed_tenants),
        "last": max(one.last for one in changed_tenants),
        "rate_card": rate_card,
        "run": run,
        "whole": whole,
    }
    billing_periods.take_tenant_billing_locks(tenants)
    with _planned_cursor(
        BULK_PLAN if sum(one.stretches for one in changed_tenants) > BULK_THRESHOLD else INDEX_PLAN
    ) as cursor:
        cursor.execute(load_sql("billing/rating/rate_leases"), values)
        used, charged, written = cursor.fetchone()
        # Charged pieces lie inside their interval and never overlap, so equal sums mean full coverage.
        if used != charged:
            raise UsageNotCovered
    return RatingOutcome(written, used, tuple(tenants))


def _find_gaps(changed_tenants: list[UnratedTenant], *, whole: bool) -> tuple[UnratedInterval, ...]:
    with _planned_cursor(INDEX_PLAN) as cursor:
        values = {"tenants": [one.tenant for one in changed_tenants], "whole": whole}
        cursor.execute(load_sql("billing/rating/new_usage_gaps"), values)
        return tuple(UnratedInterval(*row) for row in cursor.fetchall())


def rating_run_at(now: datetime) -> int:
    """Return the rating run of a moment, which charges refer to; create it if needed."""
    started = {"started_at": now, "finished_at": now, "tzdata_version": billing_periods.tzdata_version()}
    return BillingRun.objects.get_or_create(label=f"rate {now.isoformat()}", defaults=started)[0].pk


@contextmanager
def _planned_cursor(plan: dict[str, str]) -> Iterator[Any]:
    """Yield a cursor with these planner settings, and reset them afterwards."""
    with transaction.atomic(), connection.cursor() as cursor:
        for name, value in plan.items():
            cursor.execute(f"SET LOCAL {name} = {value}")
        yield cursor
        for name in plan:
            cursor.execute(f"SET LOCAL {name} TO DEFAULT")
