"""Rating of volumes, by the same rules as leases: GiB × seconds × price.

Storage is sold from when its first list price begins. From then on a second without a price is a gap that
blocks its tenant, never free.
"""

from collections.abc import Collection
from datetime import datetime

from django.db import DatabaseError, transaction

from billing.models import PriceVersion
from billing.models.charges import GIB_SECONDS
from billing.services.periods import billing_periods
from billing.services.rating import lease_rating, unpriced_usage
from billing.services.rating.lease_rating import (
    PriceGap,
    RatingFailure,
    RatingOutcome,
    UnratedInterval,
    UsageNotCovered,
)
from broker.services.volumes import volume_metering
from ports.postgres.sql_statements import query_rows
from tenants.models import Tenant
from tenants.services.rls import system_scope, tenant_scope

NO_OUTCOME = RatingOutcome()
NewUsage = list[tuple[str, datetime, datetime]]  # (tenant id, since, until)


def rate_volumes(*, now: datetime, whole: bool = False) -> RatingOutcome:
    """Rate the new usage of all tenants' volumes.

    A price gap, or rows that PostgreSQL refuses, block only their own tenant.
    """
    since, outcome = PriceVersion.objects.storage_sold_since(), NO_OUTCOME
    if since is None:
        return outcome
    with system_scope():
        changed_tenants = _new_usage(since, whole=whole)
    for tenant_id, _, _ in changed_tenants:
        try:
            with tenant_scope(tenant_id):
                outcome += rate_tenant_volumes(Tenant.objects.get(pk=tenant_id), now=now, whole=whole)
        except PriceGap as gap:
            outcome += RatingOutcome(gaps=gap.gaps)
        except DatabaseError as error:
            outcome += RatingOutcome(broken=(RatingFailure(tenant_id, str(error).strip()),))
    return outcome


def rate_tenant_volumes(tenant: Tenant, *, now: datetime, whole: bool = False) -> RatingOutcome:
    """Rate the new usage of one tenant's volumes, or raise PriceGap.

    Holds the tenant's billing lock, so nobody else rates it meanwhile; runs in the tenant's row-level security
    scope.
    """
    with tenant_scope(tenant.pk):
        billing_periods.take_tenant_billing_locks([tenant.pk])
        since = PriceVersion.objects.storage_sold_since()
        changed_tenants = _new_usage(since, whole=whole, tenants=[tenant.pk]) if since else []
        if since is None or not changed_tenants:
            return NO_OUTCOME
        for _, first, last in changed_tenants:
            billing_periods.ensure_periods(tenant, since=first, until=last)
        try:
            return _charge(tenant, since, now=now, whole=whole)
        except UsageNotCovered:
            raise PriceGap(_gaps(tenant, now)) from None


def tenants_with_new_usage(tenants: Collection[str]) -> set[str]:
    """Return those of these tenants whose volumes have unrated steps."""
    since = PriceVersion.objects.storage_sold_since()
    return {each for each, _, _ in _new_usage(since, whole=False, tenants=list(tenants))} if since else set()


def close_open_intervals(tenant: Tenant, *, at: datetime) -> None:
    """Close the open intervals of a tenant's volumes, so that they can be rated."""
    volume_metering.add_tenant_ticks(tenant, at=at)


def rate_volumes_daily(*, now: datetime) -> RatingOutcome:
    """Rate all volumes once a day, so that drafts and budgets stay current."""
    volume_metering.add_due_ticks(now=now)
    return rate_volumes(now=now)


def _new_usage(since: datetime, *, whole: bool, tenants: list[str] | None = None) -> NewUsage:
    return query_rows("billing/rating/new_volume_usage", sold_since=since, whole=whole, tenants=tenants)


def _charge(tenant: Tenant, since: datetime, *, now: datetime, whole: bool) -> RatingOutcome:
    values = {
        "tenant": tenant.pk,
        "sold_since": since,
        "meter": GIB_SECONDS,
        "run": lease_rating.rating_run_at(now),
        "whole": whole,
    }
    with transaction.atomic():
        [(used, charged, written)] = query_rows("billing/rating/rate_volumes", **values)
        # Charges lie inside their interval and never overlap, so equal sums mean full coverage.
        if used != charged:
            raise UsageNotCovered
    return RatingOutcome(written, used, (tenant.pk,))


def _gaps(tenant: Tenant, now: datetime) -> tuple[UnratedInterval, ...]:
    found = unpriced_usage.unpriced_storage(now=now, tenant=tenant.pk)
    return tuple(
        UnratedInterval(
            each.tenant, each.lease, each.seq, each.offering, each.currency, each.since, each.until, each.unit_seconds
        )
        for each in found
    )
