"""Prices that are one tenant's own: they come before the list's, second by second, for as long as they hold."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import QuerySet

from billing.models import BillingPeriod, PriceVersion, Quote, RateCard, RatedCharge
from billing.models.prices import PriceModel
from billing.services import prices, turns
from billing.services.prices import PriceFixed, whole_second
from broker.models import Offering
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_tenant

OWN = "own"
KEY = re.compile(r"[0-9]{1,18}", re.ASCII)


class PriceOverlaps(Refused):
    """One price at a time: what is agreed for some stretch of time is not agreed twice."""

    code, status, title = "price-overlaps", 409, "This tenant has a price of its own then"


@transaction.atomic
def agree(
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
    """Let a tenant have a price of its own in [since, until), or from `since` on for good.

    Both are rounded up to whole seconds. It begins now or later, for what was used had a price. One that runs then
    is closed where this one begins, unless it would have lasted longer. Nought has to be meant: `free` says so.
    """
    prices.check(tenant.currency, nano_per_hour)
    since, until = whole_second(since), whole_second(until) if until else None
    _check(since, until, nano_per_hour, free=free, now=now)
    with as_tenant(tenant.pk):
        turns.take()
        card = RateCard.objects.get_or_create(name=OWN, tenant_id=tenant.pk)[0]
        card = RateCard.objects.select_for_update().get(pk=card.pk)
        before = _make_room(_own(tenant, offering), since, until)
        _uncharged(tenant, offering, since)
        version = PriceVersion.objects.create(
            tenant_id=tenant.pk,
            rate_card=card,
            offering=offering,
            currency=tenant.currency,
            valid=DateTimeTZRange(since, until),
            nano_per_hour=nano_per_hour,
            free_start_s=prices.free_start_of(offering),
            created_by=actor.label,
            created_at=now,
            **(tiers or {}),
        )
        audit.record(
            "price.agree",
            actor=actor,
            now=now,
            tenant_id=tenant.pk,
            subject_id=offering.pk,
            subject_label=offering.label,
            currency=tenant.currency,
            before=before,
            after=nano_per_hour,
            since=since.isoformat(),
            until=until.isoformat() if until else None,
        )
    return version


def find(pk: str) -> PriceVersion:
    """Return a tenant's own price, or raise Missing. Must run as staff."""
    if KEY.fullmatch(pk):
        rows = PriceVersion.objects.filter(tenant_id__isnull=False).select_related("offering")
        if found := rows.filter(pk=int(pk)).first():
            return found
    raise Missing(
        "There is no such price of a tenant's own.", fix="Go to the offering to see which there are."
    )


@transaction.atomic
def end(version: PriceVersion, *, at: datetime, actor: Actor, now: datetime) -> PriceVersion:
    """Let a tenant's own price end at a moment that is still to come; from then on the list's holds."""
    at = whole_second(at)
    with as_tenant(version.tenant_id or ""):
        tenant = Tenant.objects.get(pk=version.tenant_id or "")
        turns.take()
        version = PriceVersion.objects.select_for_update(of=("self",)).get(pk=version.pk)
        if at < now or at <= version.valid.lower or (version.valid.upper and at > version.valid.upper):
            raise Invalid(
                "at",
                "A price ends after it began, not before now, and not later than it would have.",
                fix="Choose a moment between.",
            )
        _uncharged(tenant, version.offering, at)
        version.valid = DateTimeTZRange(version.valid.lower, at)
        version.save(update_fields=["valid"])
        audit.record(
            "price.end",
            actor=actor,
            now=now,
            tenant_id=tenant.pk,
            subject_id=version.offering_id,
            subject_label=version.offering.label,
            currency=version.currency,
            price=version.nano_per_hour,
            until=at.isoformat(),
        )
    return version


def standing(
    tenant: Tenant,
    offering: Offering,
    *,
    nano_per_hour: int,
    since: datetime,
    until: datetime | None,
    tiers: Mapping[str, Any] | None = None,
) -> PriceVersion | None:
    """Return the version that says just this, or None: who repeats what was done is told that it is."""
    valid = DateTimeTZRange(whole_second(since), whole_second(until) if until else None)
    return (
        _own(tenant, offering)
        .filter(nano_per_hour=nano_per_hour, valid=valid, **(tiers or {"model": PriceModel.FLAT}))
        .first()
    )


def _check(since: datetime, until: datetime | None, nano_per_hour: int, *, free: bool, now: datetime) -> None:
    if since < now:
        raise Invalid(
            "since",
            "A tenant's own price begins now or later: what was used before had a price, and keeps it.",
            fix="Choose a later moment; what was charged is given back by a credit note.",
        )
    if until and until <= since:
        raise Invalid("until", "It ends after it begins.", fix="Choose a later end, or none.")
    if nano_per_hour == 0 and not free:
        raise Invalid(
            "price",
            "At nought this tenant would pay nothing for it.",
            fix="Say that it is meant to be free, or type a price.",
        )


def _own(tenant: Tenant, offering: Offering) -> QuerySet[PriceVersion]:
    return PriceVersion.objects.filter(tenant_id=tenant.pk, offering=offering, currency=tenant.currency)


def _make_room(own: QuerySet[PriceVersion], since: datetime, until: datetime | None) -> int | None:
    """Close what runs at `since` and return its price; raise PriceOverlaps where that would take away more."""
    closed = None
    for version in own.filter(valid__overlap=DateTimeTZRange(since, until)).order_by("valid"):
        begins, ends = version.valid.lower, version.valid.upper
        outlasts = until is not None and (ends is None or ends > until)
        if begins >= since or outlasts:
            held = f"from {begins.isoformat()}" + (f" until {ends.isoformat()}" if ends else " on, for good")
            raise PriceOverlaps(
                f"It has a price of its own {held} already, and one price holds at a time.",
                fix="End that one first, or choose another time.",
            )
        version.valid = DateTimeTZRange(begins, since)
        version.save(update_fields=["valid"])
        closed = version.nano_per_hour
    return closed


def _uncharged(tenant: Tenant, offering: Offering, since: datetime) -> None:
    """Refuse to change the price of a second that is charged: `now` may have passed long ago when this is written."""
    months = BillingPeriod.objects.filter(tenant=tenant, span__endswith__gt=since)
    charges = RatedCharge.objects.filter(
        period_id__in=months.values("pk"), offering_id=offering.pk, e__gt=since
    )
    promised = Quote.objects.filter(offering=offering)
    if charges.exclude(lease_id__in=promised.values("lease_id")).exists():
        raise PriceFixed(
            f"{offering.label} was charged to this tenant after {since.isoformat()} already.",
            fix="Choose a later moment.",
        )
