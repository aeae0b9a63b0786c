"""Tenant-specific prices: they take precedence over list prices while they hold."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import QuerySet

from billing.models import BillingPeriod, PriceVersion, Quote, RateCard, RatedCharge
from billing.models.prices import PriceModel
from billing.services.catalogue import price_list
from billing.services.catalogue.price_list import PriceAlreadyCharged, whole_second
from billing.services.periods import billing_periods
from broker.models import Offering
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from tenants.services.rls import tenant_scope

TENANT_CARD_NAME = "own"
VERSION_ID = re.compile(r"[0-9]{1,18}", re.ASCII)


class PriceOverlaps(ProblemError):
    """A tenant has one specific price for an offering at a time."""

    code, status, title = "price-overlaps", 409, "A custom price already exists in this period"


@transaction.atomic
def set_tenant_price(
    *,
    tenant: Tenant,
    offering: Offering,
    nano_per_hour: int,
    since: datetime,
    until: datetime | None = None,
    free: bool = False,
    tiers: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> PriceVersion:
    """Give a tenant its own price for [since, until), or from `since` on for good.

    Both are rounded up to whole seconds, but for `now`, which is the second in progress where nothing of that was
    charged yet. It begins now or later: earlier usage already had a price. A
    price that holds then is closed where this one begins, unless it would have lasted longer. A price
    of zero must be confirmed with `free`.
    """
    price_list.check_price(tenant.currency, nano_per_hour)
    starts, until = price_list.possible_starts(since, now=now), whole_second(until) if until else None
    _check_new_price(since := starts[-1], until, nano_per_hour, free=free, now=now)
    with tenant_scope(tenant.pk):
        billing_periods.take_tenant_billing_locks([tenant.pk])
        rate_card = RateCard.objects.get_or_create(name=TENANT_CARD_NAME, tenant_id=tenant.pk)[0]
        rate_card = RateCard.objects.select_for_update().get(pk=rate_card.pk)
        if starts[0] < since and _may_begin(tenant, offering, starts[0]):
            since = starts[0]
        closed = _close_overlapping(_tenant_versions(tenant, offering), since, until)
        _check_uncharged(tenant, offering, since)
        version = PriceVersion.objects.create(
            tenant_id=tenant.pk,
            rate_card=rate_card,
            offering=offering,
            currency=tenant.currency,
            valid=DateTimeTZRange(since, until),
            nano_per_hour=nano_per_hour,
            free_start_s=price_list.free_start_seconds(offering),
            created_by=actor.label,
            created_at=now,
            replaced_id=closed.version if closed else None,
            replaced_until=closed.until if closed else None,
            **(tiers or {}),
        )
        audit.record(
            "price.agree",
            offering,
            offering.label,
            tenant.pk,
            actor=actor,
            now=now,
            currency=tenant.currency,
            before=closed.nano_per_hour if closed else None,
            after=nano_per_hour,
            since=since.isoformat(),
            until=until.isoformat() if until else None,
        )
    return version


def find_tenant_price(pk: str) -> PriceVersion:
    """Return a tenant-specific price, or raise ObjectNotFound. Requires staff scope."""
    if VERSION_ID.fullmatch(pk):
        rows = PriceVersion.objects.filter(tenant_id__isnull=False).select_related("offering")
        if found := rows.filter(pk=int(pk)).first():
            return found
    raise ObjectNotFound("The custom price was not found.", fix="Open the offering to see its custom prices.")


@transaction.atomic
def end_tenant_price(version: PriceVersion, *, at: datetime, actor: Actor, now: datetime) -> PriceVersion:
    """End a tenant-specific price at a future moment; then the list price holds."""
    at = whole_second(at)
    with tenant_scope(version.tenant_id or ""):
        tenant = Tenant.objects.get(pk=version.tenant_id or "")
        billing_periods.take_tenant_billing_locks([tenant.pk])
        version = PriceVersion.objects.select_for_update(of=("self",)).get(pk=version.pk)
        if at < now or at <= version.valid.lower or (version.valid.upper and at > version.valid.upper):
            raise InvalidValue(
                "at",
                "The end must be after the start, not in the past, and not after the current end.",
                fix="Choose a time in this range.",
            )
        _check_uncharged(tenant, version.offering, at)
        version.valid = DateTimeTZRange(version.valid.lower, at)
        version.save(update_fields=["valid"])
        audit.record(
            "price.end",
            version.offering,
            version.offering.label,
            tenant.pk,
            actor=actor,
            now=now,
            currency=version.currency,
            price=version.nano_per_hour,
            until=at.isoformat(),
        )
    return version


def find_identical_price(
    tenant: Tenant,
    offering: Offering,
    *,
    nano_per_hour: int,
    since: datetime,
    until: datetime | None,
    tiers: Mapping[str, Any] | None = None,
) -> PriceVersion | None:
    """Return an identical existing version, or None; makes a repeated request idempotent."""
    valid = DateTimeTZRange(whole_second(since), whole_second(until) if until else None)
    return (
        _tenant_versions(tenant, offering)
        .filter(nano_per_hour=nano_per_hour, valid=valid, **(tiers or {"model": PriceModel.FLAT}))
        .first()
    )


def _check_new_price(since: datetime, until: datetime | None, nano_per_hour: int, *, free: bool, now: datetime) -> None:
    if since < now:
        raise InvalidValue(
            "since",
            "A custom price must start now or later. Earlier usage keeps its price.",
            fix="Choose a later time. Use a credit note for earlier charges.",
        )
    if until and until <= since:
        raise InvalidValue("until", "The end must be after the start.", fix="Choose a later end, or none.")
    if nano_per_hour == 0 and not free:
        raise InvalidValue(
            "price",
            "A price of 0 makes the offering free for this tenant.",
            fix="Confirm that it is free, or enter a price.",
        )


def _tenant_versions(tenant: Tenant, offering: Offering) -> QuerySet[PriceVersion]:
    return PriceVersion.objects.filter(tenant_id=tenant.pk, offering=offering, currency=tenant.currency)


class ClosedPrice(NamedTuple):
    """A price that another one closed, and when it would have ended."""

    version: int
    nano_per_hour: int
    until: datetime | None


def _close_overlapping(own: QuerySet[PriceVersion], since: datetime, until: datetime | None) -> ClosedPrice | None:
    """Close the price that holds at `since`, and return it as it was.

    Raises PriceOverlaps if that would take away more.
    """
    closed = None
    for version in own.filter(valid__overlap=DateTimeTZRange(since, until)).order_by("valid"):
        begins, ends = version.valid.lower, version.valid.upper
        outlasts = until is not None and (ends is None or ends > until)
        if begins >= since or outlasts:
            held = f"from {begins.isoformat()}" + (f" until {ends.isoformat()}" if ends else " on, for good")
            raise PriceOverlaps(
                f"The tenant already has a custom price {held}.",
                fix="End the other price first, or choose another time.",
            )
        version.valid = DateTimeTZRange(begins, since)
        version.save(update_fields=["valid"])
        closed = ClosedPrice(version.pk, version.nano_per_hour, ends)
    return closed


def _check_uncharged(tenant: Tenant, offering: Offering, since: datetime) -> None:
    """Refuse to change the price of seconds that were already charged.

    `now` may be long past when this is written, because the transaction waited for a lock.
    """
    if _was_charged(tenant, offering, since):
        raise PriceAlreadyCharged(
            f"{offering.label} was already charged to this tenant after {since.isoformat()}.",
            fix="Choose a later time.",
        )


def _may_begin(tenant: Tenant, offering: Offering, since: datetime) -> bool:
    """Return whether the second in progress may still get another price."""
    begins_then = _tenant_versions(tenant, offering).filter(valid__startswith=since).exists()
    return not begins_then and not _was_charged(tenant, offering, since)


def _was_charged(tenant: Tenant, offering: Offering, since: datetime) -> bool:
    months = BillingPeriod.objects.filter(tenant=tenant, span__endswith__gt=since)
    charges = RatedCharge.objects.filter(period_id__in=months.values("pk"), offering_id=offering.pk, e__gt=since)
    promised = Quote.objects.filter(offering=offering, is_ceiling=False)
    return charges.exclude(lease_id__in=promised.values("lease_id")).exists()
