"""What volumes come to: GiB × seconds × price of a GiB-hour, charged beside leases and by the same rules.

Storage is sold from the moment on at which the first price of it on the list begins (sale.py). From then on a second
without a price is a gap that holds up its tenant, never nought.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import DatabaseError, connection, transaction

from billing.models.charges import GIB_SECONDS
from billing.services import gaps, periods, rating, turns
from billing.services.rating import Broken, Gap, Outcome, PriceGap, Uncovered
from billing.services.statements import statement
from billing.services.storage.sale import sold_since
from broker.services.volumes import histories
from tenants.models import Tenant
from tenants.services.walls import as_sweep, as_tenant

NOTHING = Outcome()
News = list[tuple[str, datetime, datetime]]  # whose, and from when until when


def rate(*, now: datetime, whole: bool = False) -> Outcome:
    """Charge every tenant's news of volumes; a gap, or rows that PostgreSQL refuses, hold up only their own tenant."""
    since, outcome = sold_since(), NOTHING
    if since is None:
        return outcome
    with as_sweep():
        news = _news(since, whole=whole)
    for tenant_id, _, _ in news:
        try:
            with as_tenant(tenant_id):
                outcome += rate_tenant(Tenant.objects.get(pk=tenant_id), now=now, whole=whole)
        except PriceGap as gap:
            outcome += Outcome(gaps=gap.gaps)
        except DatabaseError as error:
            outcome += Outcome(broken=(Broken(tenant_id, str(error).strip()),))
    return outcome


def rate_tenant(tenant: Tenant, *, now: datetime, whole: bool = False) -> Outcome:
    """Charge one tenant's news of volumes behind its wall, or raise PriceGap. Nobody else charges meanwhile."""
    with as_tenant(tenant.pk):
        turns.take()
        since = sold_since()
        news = _news(since, whole=whole, tenants=[tenant.pk]) if since else []
        if since is None or not news:
            return NOTHING
        for _, first, last in news:
            periods.ensure(tenant, since=first, until=last)
        try:
            return _charge(tenant, since, now=now, whole=whole)
        except Uncovered:
            raise PriceGap(_gaps(tenant, now)) from None


def with_news(tenants: Collection[str]) -> set[str]:
    """Return of these tenants those whose volumes made steps that are not charged yet."""
    since = sold_since()
    return {each for each, _, _ in _news(since, whole=False, tenants=list(tenants))} if since else set()


def cut(tenant: Tenant, *, at: datetime) -> None:
    """Close what is open of a tenant's volumes at a moment, so that what they came to by then can be charged."""
    histories.cut_all(tenant, at=at)


def charge_daily(*, now: datetime) -> Outcome:
    """Once a day, charge what each volume has come to, so that drafts and budgets follow."""
    histories.cut_due(now=now)
    return rate(now=now)


def _news(since: datetime, *, whole: bool, tenants: list[str] | None = None) -> News:
    return _rows("storage_news", sold_since=since, whole=whole, tenants=tenants)


def _charge(tenant: Tenant, since: datetime, *, now: datetime, whole: bool) -> Outcome:
    asked = {
        "tenant": tenant.pk,
        "sold_since": since,
        "meter": GIB_SECONDS,
        "run": rating.run_at(now),
        "whole": whole,
    }
    with transaction.atomic():
        [(used, charged, written)] = _rows("storage_rate", **asked)
        # Pieces of a stretch lie inside it and never overlap, so equal sums mean that every stretch is covered.
        if used != charged:
            raise Uncovered
    return Outcome(written, used, (tenant.pk,))


def _gaps(tenant: Tenant, now: datetime) -> tuple[Gap, ...]:
    found = gaps.of_storage(now=now, tenant=tenant.pk)
    return tuple(
        Gap(
            each.tenant,
            each.lease,
            each.seq,
            each.offering,
            each.currency,
            each.since,
            each.until,
            each.unit_seconds,
        )
        for each in found
    )


def _rows(name: str, **asked: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement(name), asked)
        return list(cursor.fetchall())
