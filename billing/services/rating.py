"""Usage becomes charges: one statement for whatever has ended since the last run, for all tenants at once."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import DatabaseError, OperationalError, connection, transaction

from billing.models import BillingRun
from billing.services import periods, prices, turns
from billing.services.statements import statement
from tenants.models import Tenant
from tenants.services.walls import as_sweep, as_tenant

SHOWN = 5
# The planner cannot know how much news there is, and the wrong plan takes a minute instead of a second:
# a handful is found through indexes, whatever the tables have grown to; a month's worth is read in one go.
MANY = 50_000
BATCH = 250_000
BY_INDEX = {"jit": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
AT_ONCE = {
    "jit": "off",
    "enable_nestloop": "off",
    "enable_mergejoin": "off",
    "max_parallel_workers_per_gather": "0",
    "work_mem": "'128MB'",
}


@dataclass(frozen=True, slots=True)
class Gap:
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
    """Seconds were used that have no price: nothing of their tenant is charged until somebody mends it."""

    def __init__(self, gaps: tuple[Gap, ...]) -> None:
        self.gaps = gaps
        listed = "; ".join(str(gap) for gap in gaps[:SHOWN])
        more = f" and {len(gaps) - SHOWN} more" if len(gaps) > SHOWN else ""
        super().__init__(
            f"No price or no month covers {listed}{more}. Nothing new of this tenant was charged."
            " Publish a price that begins where the gap does; the next run charges it."
        )


class Uncovered(Exception):
    """The sum of charges is not the sum of use: nothing of the statement may stay."""


@dataclass(frozen=True, slots=True)
class News:
    """A tenant with something to charge, and the time that it spans."""

    tenant: str
    stretches: int
    first: datetime
    last: datetime
    tiled: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """A tenant whose news PostgreSQL refuses to charge, and what it said; nothing of it is lost."""

    tenant: str
    why: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did: how many charges it wrote, whose news it took, and what keeps whose waiting."""

    written: int = 0
    unit_seconds: int = 0
    tenants: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    broken: tuple[Broken, ...] = ()

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.written + other.written,
            self.unit_seconds + other.unit_seconds,
            self.tenants + other.tenants,
            self.gaps + other.gaps,
            self.broken + other.broken,
        )


def rate(*, now: datetime, whole: bool = False) -> Outcome:
    """Charge every tenant's news; a price gap, or rows that PostgreSQL refuses, hold up only their own tenant.

    `whole` forgets the marks and looks at everything again, which writes nothing that is there already.
    """
    with as_sweep():
        news = _news(whole=whole)
    if not news:
        return Outcome()
    run, card, outcome = run_at(now), prices.list_card().pk, Outcome()
    for batch in _batches(news):
        outcome += _charge_each(batch, run=run, card=card, whole=whole)
    return outcome


def rate_tenant(tenant: Tenant, *, now: datetime) -> Outcome:
    """Charge one tenant's news behind its wall, or raise PriceGap.

    No other run charges anything until the transaction around this one is over, whether there is news or not: who
    closes a month relies on it.
    """
    with as_tenant(tenant.pk):
        turns.take()
        news = _news(whole=False, tenants=[tenant.pk])
        if not news:
            return Outcome()
        _tile(news)
        card = prices.list_card().pk
        try:
            return _charge(news, run=run_at(now), card=card, whole=False)
        except Uncovered:
            raise PriceGap(_gaps(news, whole=False)) from None


def rate_some(tenants: Collection[str], *, run: int) -> set[str]:
    """Charge the news of these tenants together, as their shard; return those of whom something could not be charged.

    As with `rate_tenant`, nobody else charges until the transaction around this one is over.
    """
    turns.take()
    news = _news(whole=False, tenants=list(tenants))
    left = {one.tenant for one in news if not one.tiled}
    if news := [one for one in news if one.tiled]:
        card = prices.list_card().pk
        outcome = _charge_all_but_gaps(news, run=run, card=card, whole=False)
        left |= {gap.tenant for gap in outcome.gaps}
    return left


def _charge_each(news: list[News], *, run: int, card: int, whole: bool) -> Outcome:
    """Charge them together; where PostgreSQL refuses that, halve them until the tenant it is about stands alone."""
    try:
        _tile(news)
        return _charge_all_but_gaps(news, run=run, card=card, whole=whole)
    except OperationalError:
        raise  # it is away or has no time: nobody's rows are to blame, and the next run comes soon
    except DatabaseError as error:
        if len(news) == 1:
            return Outcome(broken=(Broken(news[0].tenant, str(error).strip()),))
    half = len(news) // 2
    first, second = news[:half], news[half:]
    charged = _charge_each(first, run=run, card=card, whole=whole)
    return charged + _charge_each(second, run=run, card=card, whole=whole)


def _charge_all_but_gaps(news: list[News], *, run: int, card: int, whole: bool) -> Outcome:
    try:
        with as_sweep():
            return _charge(news, run=run, card=card, whole=whole)
    except Uncovered:
        with as_sweep():
            gaps = _gaps(news, whole=whole)
            held = {gap.tenant for gap in gaps}
            rest = [one for one in news if one.tenant not in held]
            outcome = _charge(rest, run=run, card=card, whole=whole) if rest else Outcome()
        return replace(outcome, gaps=gaps)


def _batches(news: list[News]) -> Iterator[list[News]]:
    """Cut a backlog into pieces that are each charged within a statement's time; a tenant stays whole."""
    batch: list[News] = []
    size = 0
    for one in news:
        if batch and size + one.stretches > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.stretches
    yield batch


def _news(*, whole: bool, tenants: list[str] | None = None) -> list[News]:
    with _planned(BY_INDEX) as cursor:
        cursor.execute(statement("news"), {"whole": whole, "tenants": tenants})
        return [News(*row) for row in cursor.fetchall()]


def _tile(news: list[News]) -> None:
    """Make the months that are missing; once a month for each tenant that uses anything."""
    for one in news:
        if not one.tiled:
            with as_tenant(one.tenant):
                periods.ensure(Tenant.objects.get(pk=one.tenant), since=one.first, until=one.last)


def _charge(news: list[News], *, run: int, card: int, whole: bool) -> Outcome:
    asked = {
        "tenants": [one.tenant for one in news],
        "first": min(one.first for one in news),
        "last": max(one.last for one in news),
        "card": card,
        "run": run,
        "whole": whole,
    }
    turns.take()
    with _planned(AT_ONCE if sum(one.stretches for one in news) > MANY else BY_INDEX) as cursor:
        cursor.execute(statement("rate"), asked)
        used, charged, written = cursor.fetchone()
        # Pieces of a stretch lie inside it and never overlap, so equal sums mean that every stretch is covered.
        if used != charged:
            raise Uncovered
    return Outcome(written, used, tuple(one.tenant for one in news))


def _gaps(news: list[News], *, whole: bool) -> tuple[Gap, ...]:
    with _planned(BY_INDEX) as cursor:
        asked = {"tenants": [one.tenant for one in news], "whole": whole}
        cursor.execute(statement("gaps"), asked)
        return tuple(Gap(*row) for row in cursor.fetchall())


def run_at(now: datetime) -> int:
    """Return the run of a moment, which charges name; made when it is first asked for."""
    started = {"started_at": now, "finished_at": now, "tzdata_version": periods.edition()}
    return BillingRun.objects.get_or_create(label=f"rate {now.isoformat()}", defaults=started)[0].pk


@contextmanager
def _planned(plan: dict[str, str]) -> Iterator[Any]:
    """Give a cursor that runs its statements as said; the transaction around it goes on as before."""
    with transaction.atomic(), connection.cursor() as cursor:
        for name, value in plan.items():
            cursor.execute(f"SET LOCAL {name} = {value}")
        yield cursor
        for name in plan:
            cursor.execute(f"SET LOCAL {name} TO DEFAULT")
