"""List prices: a version is added, never edited; one that runs is closed where the next begins."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import MAXYEAR, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import F

from billing.domain.money import EXPONENTS, fixed_point
from billing.domain.pricing import Held, beside
from billing.models import BillingPeriod, PriceVersion, Quote, RateCard, RatedCharge
from billing.models.prices import PriceModel
from billing.services import turns
from billing.services.storage import sale
from broker.domain.states import PriceClass
from broker.models import Lease, Offering
from ports import database
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_sweep

LIST = "list"
DECIMALS, LONGEST, DIGITS = 9, 24, 20  # of a price as it is typed: far beyond what any is
COURSE = """
SELECT tenant_id IS NOT NULL, lower(valid), upper(valid), nano_per_hour
  FROM billing_priceversion
 WHERE offering_id = %s AND currency = %s AND (tenant_id IS NULL OR tenant_id = %s)
"""
HIGHEST = 10**15  # a million an hour; beyond it a typing mistake is likelier than a price


class PriceFixed(Refused):
    """Seconds that have a price keep it."""

    code, status, title = "price-fixed", 409, "This price can no longer be changed"


class NoPrice(Refused):
    """An offering has no price at that moment; it is never sold for nothing instead."""

    code, status, title = "no-price", 409, "This offering has no price"


@dataclass(frozen=True, slots=True)
class Price:
    """What one unit of an offering costs at a moment."""

    version: int
    offering: str
    currency: str
    nano_per_hour: int
    since: datetime
    until: datetime | None
    own: bool = False  # of the tenant's own card, not the list's
    free_start_s: int = 0  # what is taken back before it ran so long costs nothing
    model: str = PriceModel.FLAT
    tier_from_s: tuple[int, ...] = ()

    @property
    def cheaper(self) -> str:
        """In words, what of a month makes it less; empty where it asks by the hour alone."""
        if not self.tier_from_s:
            return ""
        hours = fixed_point(self.tier_from_s[0] * 100 // 3600, 2).rstrip("0").rstrip(".")
        return (
            f"less for {hours} h at once"
            if self.model == PriceModel.PACKAGE
            else f"less from {hours} h a month on"
        )


def list_card() -> RateCard:
    """Return the one rate card that every tenant pays by, where it has no price of its own."""
    return RateCard.objects.get_or_create(name=LIST, tenant_id=None)[0]


@transaction.atomic
def publish(
    *,
    offering: Offering,
    currency: str,
    nano_per_hour: int,
    since: datetime,
    actor: Actor,
    now: datetime,
    tiers: Mapping[str, Any] | None = None,
) -> PriceVersion:
    """Let a price hold from `since` on, until the next version that is already scheduled.

    `tiers` are as tiers.read gives them; without, it asks by the hour alone.
    `since` is rounded up to a whole second and lies in the future, unless it fills a gap: seconds that have
    a price keep it, seconds without one could not have been charged yet. Nobody charges meanwhile: `now` may
    have passed long ago when this is at last written, and what was charged since then stands as well.
    """
    check(currency, nano_per_hour)
    since = whole_second(since)
    turns.take()
    card = RateCard.objects.select_for_update().get(pk=list_card().pk)
    versions = PriceVersion.objects.filter(rate_card=card, offering=offering, currency=currency)
    running = versions.filter(valid__contains=since).first()
    following = versions.filter(valid__startswith__gt=since).order_by("valid").first()
    if offering.is_storage:
        _check_storage(since)
    if running:
        if since < now or running.valid.lower == since or charged(running, beyond=since):
            raise PriceFixed(
                f"{offering.label} already has a price in {currency} at {since.isoformat()},"
                " and it may have been charged or promised.",
                fix="Choose a later moment.",
            )
        before = running.nano_per_hour
        running.valid = DateTimeTZRange(running.valid.lower, since)
        running.save(update_fields=["valid"])
    version = PriceVersion.objects.create(
        rate_card=card,
        offering=offering,
        currency=currency,
        valid=DateTimeTZRange(since, following.valid.lower if following else None),
        nano_per_hour=nano_per_hour,
        free_start_s=free_start_of(offering),
        created_by=actor.label,
        created_at=now,
        **(tiers or {}),
    )
    audit.record(
        "price.publish",
        actor=actor,
        now=now,
        subject_id=offering.pk,
        subject_label=offering.label,
        currency=currency,
        before=before if running else None,
        after=nano_per_hour,
        since=since.isoformat(),
        **({"model": version.model} if tiers else {}),
    )
    return version


def _check_storage(since: datetime) -> None:
    """Refuse to charge volumes for what they lived before storage was sold at all."""
    first = sale.sold_since()
    if (first is None and sale.was_counted(since)) or (first is not None and since < first):
        raise PriceFixed(
            "What volumes were before storage had a price is charged to nobody.",
            fix=f"Choose {'a moment from now on' if first is None else first.isoformat()} or later.",
        )


def free_start_of(offering: Offering) -> int:
    """Return within how many seconds of its start a lease costs nothing if it is taken back: only spot ever is."""
    return settings.FREE_START_S if offering.price_class == PriceClass.SPOT else 0


def standing(
    offering: Offering,
    *,
    currency: str,
    nano_per_hour: int,
    since: datetime,
    tiers: Mapping[str, Any] | None = None,
) -> PriceVersion | None:
    """Return the version that says just this, or None: who repeats what was done is told that it is."""
    return PriceVersion.objects.filter(
        tenant_id=None,
        offering=offering,
        currency=currency,
        nano_per_hour=nano_per_hour,
        valid__startswith=whole_second(since),
        **(tiers or {"model": PriceModel.FLAT}),
    ).first()


def whole_second(moment: datetime) -> datetime:
    """Round up to a whole second, for nothing is charged by less, or raise Invalid where calendars end."""
    if moment.year >= MAXYEAR:
        raise Invalid(
            "moment", "That is beyond what calendars can tell.", fix="Choose an earlier moment, or none."
        )
    cut = moment.replace(microsecond=0)
    return cut if cut == moment else cut + timedelta(seconds=1)


def nano_of(text: str) -> int:
    """Read a price of an hour as it is typed, exact to the ninth decimal, or raise Invalid."""
    try:
        nano = Decimal(text.strip()).scaleb(DECIMALS) if len(text) <= LONGEST else Decimal("NaN")
    except InvalidOperation:
        nano = Decimal("NaN")
    if not nano.is_finite() or nano.adjusted() > DIGITS or nano != nano.to_integral_value():
        raise Invalid(
            "price", "A price is a number such as 3.79, with at most nine decimals.", fix="Type it anew."
        )
    return int(nano)


def at(
    moment: datetime, *, currency: str, offerings: Iterable[str] | None = None, tenant: str = ""
) -> dict[str, Price]:
    """Return the price of every offering, or of those named, at a moment, in one query.

    It is the list's; where a `tenant` is named, its own comes before.
    """
    rows = PriceVersion.objects.paid_by(tenant).filter(currency=currency, valid__contains=moment)
    if offerings is not None:
        rows = rows.filter(offering__in=list(offerings))
    own_last = rows.order_by(F("tenant_id").asc(nulls_first=True))
    return {row.offering_id: priced(row) for row in own_last}


def course(offering: str, *, currency: str, tenant: str) -> list[tuple[datetime, int]]:
    """Return what an offering costs a tenant an hour from each moment on, in order: its own before the list's."""
    rows = database.rows(COURSE, [offering, currency, tenant])
    listed, own = ([row[1:] for row in rows if row[0] is of_tenant] for of_tenant in (False, True))
    in_order: list[Held[int]] = beside(listed, own)
    return [(since, nano) for since, _, nano in in_order]


def in_force(known: Iterable[Price]) -> list[Price]:
    """Cut the list's prices of one offering by a tenant's own, in order of time; each is as long as it is charged."""
    known = list(known)
    listed = [(price.since, price.until, price) for price in known if not price.own]
    own = [(price.since, price.until, price) for price in known if price.own]
    return [replace(price, since=since, until=until) for since, until, price in beside(listed, own)]


def promised(leases: Iterable[Lease]) -> dict[str, Price]:
    """Return by lease the price of the quote that it cites, whatever the list says; no query where none does."""
    citing = {lease.pk: lease.offering_id for lease in leases if lease.quote_id}
    quotes = Quote.objects.filter(lease__in=citing).select_related("price_version") if citing else ()
    return {
        quote.lease_id: priced(quote.price_version)
        for quote in quotes
        if quote.offering_id == citing[quote.lease_id]
    }


def upcoming(moment: datetime, *, currency: str, offerings: Iterable[str] | None = None) -> dict[str, Price]:
    """Return the first price on the list of every offering, or of those named, after a moment; one query."""
    rows = PriceVersion.objects.listed().filter(currency=currency, valid__startswith__gt=moment)
    if offerings is not None:
        rows = rows.filter(offering__in=list(offerings))
    return {row.offering_id: priced(row) for row in rows.order_by("-valid")}


def of(offering: Offering, *, currency: str, moment: datetime) -> Price:
    """Return the price of one offering at a moment, or raise NoPrice."""
    found = at(moment, currency=currency, offerings=[offering.pk]).get(offering.pk)
    if found is None:
        raise NoPrice(
            f"{offering.label} has no price in {currency} at {moment.isoformat()}, so it cannot be sold.",
            fix="Ask the operator to publish a price, or choose another offering.",
        )
    return found


def priced(row: PriceVersion) -> Price:
    """Turn a row into the value that other services reckon with."""
    return Price(
        version=row.pk,
        offering=row.offering_id,
        currency=row.currency,
        nano_per_hour=row.nano_per_hour,
        since=row.valid.lower,
        until=row.valid.upper,
        own=row.tenant_id is not None,
        free_start_s=row.free_start_s,
        model=row.model,
        tier_from_s=tuple(row.tier_from_s or ()),
    )


def unpriced(*, currency: str, moment: datetime) -> list[Offering]:
    """Return published offerings that nobody can buy because they have no price."""
    known = at(moment, currency=currency)
    return [offering for offering in Offering.objects.published().order_by("pk") if offering.pk not in known]


def charged(version: PriceVersion, *, beyond: datetime) -> bool:
    """Tell whether the list charged anybody this price for a second after that moment; what a quote promised stays."""
    with as_sweep():
        months = BillingPeriod.objects.filter(span__endswith__gt=beyond).values("pk")
        charges = RatedCharge.objects.filter(period_id__in=months, price_version_id=version.pk, e__gt=beyond)
        return charges.exclude(lease_id__in=Quote.objects.values("lease_id")).exists()


def check(currency: str, nano_per_hour: int) -> None:
    """Refuse a price that cannot be meant."""
    if currency not in EXPONENTS:
        raise Invalid(
            "currency", f"{currency} is no currency we know.", fix="Send an ISO 4217 code such as EUR."
        )
    if not 0 <= nano_per_hour <= HIGHEST:
        raise Invalid(
            "nano_per_hour",
            "A price is nought or more, and at most a million an hour.",
            fix="Send the price of an hour in thousand-millionths of the currency: 3.79 is 3790000000.",
        )
