"""List prices: versions are added, never edited; a new one closes its predecessor."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import MAXYEAR, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import F, QuerySet

from billing.domain.money import EXPONENTS, format_fixed_point
from billing.domain.pricing import InForce, cap_prices, merge_in_force
from billing.models import BillingPeriod, PriceVersion, Quote, RateCard, RatedCharge
from billing.models.prices import PriceModel, list_rate_card
from billing.services.periods import billing_periods
from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.lifecycle.states import PriceClass
from broker.models import Lease, Offering, VolumeSizeChange
from ports.postgres import sql_statements
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import system_scope

DECIMALS, MAX_PRICE_LENGTH, DIGITS = 9, 24, 20  # limits of a typed price, far beyond any real one
PRICE_HISTORY_SQL = """
SELECT tenant_id IS NOT NULL, lower(valid), upper(valid), nano_per_hour
  FROM billing_priceversion
 WHERE offering_id = %s AND currency = %s AND (tenant_id IS NULL OR tenant_id = %s)
"""
MAX_NANO_PER_HOUR = 10**15  # a million an hour; more is likelier a typing mistake


class PriceAlreadyCharged(ProblemError):
    """The price of these seconds can no longer change."""

    code, status, title = "price-fixed", 409, "This price can no longer be changed"


class NoPrice(ProblemError):
    """An offering without a price at that moment; it is not sold for free."""

    code, status, title = "no-price", 409, "This offering has no price"


@dataclass(frozen=True, slots=True)
class OfferingPrice:
    """Price of one unit of an offering at a moment."""

    version: int
    offering: str
    currency: str
    nano_per_hour: int
    since: datetime
    until: datetime | None
    own: bool = False  # from the tenant's own rate card
    free_start_s: int = 0  # a lease preempted within this time is free
    model: str = PriceModel.FLAT
    tier_from_s: tuple[int, ...] = ()
    fixed: bool = False  # by a quote from before ceilings, whatever is in force later

    @property
    def cheaper(self) -> str:
        """Volume reduction in words; empty for a flat price."""
        if not self.tier_from_s:
            return ""
        hours = format_fixed_point(self.tier_from_s[0] * 100 // 3600, 2).rstrip("0").rstrip(".")
        return f"less for {hours} h at once" if self.model == PriceModel.PACKAGE else f"less from {hours} h a month on"


@transaction.atomic
def publish_price(
    *,
    offering: Offering,
    currency: str,
    nano_per_hour: int,
    since: datetime,
    actor: Actor,
    now: datetime,
    tiers: Mapping[str, Any] | None = None,
) -> PriceVersion:
    """Publish a list price from `since` until the next scheduled version.

    `tiers` are as parse_tiers returns them; without them the price is flat. `since` is rounded up to a whole
    second, or is the second in progress if it is `now`, and lies in the future unless it fills a gap: seconds
    with a price keep it, seconds without one could not have been charged yet. Nobody charges meanwhile. `now`
    may be long past when this is written, so charges made since then are respected as well.
    """
    check_price(currency, nano_per_hour)
    billing_periods.take_billing_lock()
    rate_card = RateCard.objects.select_for_update().get(pk=list_rate_card().pk)
    versions = PriceVersion.objects.filter(rate_card=rate_card, offering=offering, currency=currency)
    since, running = _find_start(versions, nano_per_hour, since=since, now=now, offering=offering)
    following = versions.filter(valid__startswith__gt=since).order_by("valid").first()
    if offering.is_storage:
        _check_storage_price_start(since)
    if running:
        before, running_until = running.nano_per_hour, running.valid.upper
        running.valid = DateTimeTZRange(running.valid.lower, since)
        running.save(update_fields=["valid"])
    version = PriceVersion.objects.create(
        rate_card=rate_card,
        offering=offering,
        currency=currency,
        valid=DateTimeTZRange(since, following.valid.lower if following else None),
        nano_per_hour=nano_per_hour,
        free_start_s=free_start_seconds(offering),
        created_by=actor.label,
        created_at=now,
        replaced_id=running.pk if running else None,
        replaced_until=running_until if running else None,
        **(tiers or {}),
    )
    audit.record(
        "price.publish",
        offering,
        actor=actor,
        now=now,
        currency=currency,
        before=before if running else None,
        after=nano_per_hour,
        since=since.isoformat(),
        **({"model": version.model} if tiers else {}),
    )
    return version


def possible_starts(since: datetime, *, now: datetime) -> tuple[datetime, ...]:
    """Return the seconds at which a price may begin, the first if possible."""
    rounded = whole_second(since)
    return (since.replace(microsecond=0), rounded) if since == now != rounded else (rounded,)


def _find_start(
    versions: QuerySet[PriceVersion], nano_per_hour: int, *, since: datetime, now: datetime, offering: Offering
) -> tuple[datetime, PriceVersion | None]:
    """Return when a price begins, and the one that it ends.

    Raises PriceAlreadyCharged if none of its seconds is possible.
    """
    starts = possible_starts(since, now=now)
    for start in starts:
        running = versions.filter(valid__contains=start).first()
        if running is None:
            return start, None
        is_past, rises = start < now.replace(microsecond=0), nano_per_hour > running.nano_per_hour
        if not (is_past or running.valid.lower == start or was_charged(running, beyond=start, rises=rises)):
            return start, running
    raise PriceAlreadyCharged(
        f"{offering.label} already has a price at {starts[-1].isoformat()}, and it may have been charged or promised.",
        fix="Choose a later time.",
    )


def _check_storage_price_start(since: datetime) -> None:
    """Refuse to charge volumes for the time before storage was first sold."""
    first = PriceVersion.objects.storage_sold_since()
    with system_scope():
        used = VolumeSizeChange.objects.filter(seq__gt=0, at__gt=since).exists()
    if (first is None and used) or (first is not None and since < first):
        raise PriceAlreadyCharged(
            "Storage cannot have a price in the past.",
            fix=f"Choose {'a moment from now on' if first is None else first.isoformat()} or later.",
        )


def free_start_seconds(offering: Offering) -> int:
    """Return within how many seconds of its start a preempted lease is free.

    Only spot leases are ever preempted.
    """
    return settings.SPOT_FREE_INTERRUPTION_S if offering.price_class == PriceClass.SPOT else 0


def find_identical_list_price(
    offering: Offering, *, currency: str, nano_per_hour: int, since: datetime, tiers: Mapping[str, Any] | None = None
) -> PriceVersion | None:
    """Return an identical existing version, or None; makes a repeated request idempotent."""
    return PriceVersion.objects.filter(
        tenant_id=None,
        offering=offering,
        currency=currency,
        nano_per_hour=nano_per_hour,
        valid__startswith=whole_second(since),
        **(tiers or {"model": PriceModel.FLAT}),
    ).first()


def whole_second(moment: datetime) -> datetime:
    """Round up to a whole second, the smallest unit that is charged.

    Raises InvalidValue beyond the calendar's end.
    """
    if moment.year >= MAXYEAR:
        raise InvalidValue("moment", "The time is out of range.", fix="Choose an earlier time, or leave it empty.")
    cut = moment.replace(microsecond=0)
    return cut if cut == moment else cut + timedelta(seconds=1)


def parse_nano_per_hour(text: str) -> int:
    """Parse an hourly price, exact to nine decimals, or raise InvalidValue."""
    try:
        nano = Decimal(text.strip()).scaleb(DECIMALS) if len(text) <= MAX_PRICE_LENGTH else Decimal("NaN")
    except InvalidOperation:
        nano = Decimal("NaN")
    if not nano.is_finite() or nano.adjusted() > DIGITS or nano != nano.to_integral_value():
        raise InvalidValue(
            "price", "The price is not a number such as 3.79 with at most nine decimals.", fix="Enter it again."
        )
    return int(nano)


def prices_at(
    moment: datetime, *, currency: str, offerings: Iterable[str] | None = None, tenant: str = ""
) -> dict[str, OfferingPrice]:
    """Return the price of every offering, or of those named, at a moment; one query.

    It is the list price; with a `tenant`, its own price takes precedence.
    """
    rows = PriceVersion.objects.paid_by(tenant).filter(currency=currency, valid__contains=moment)
    if offerings is not None:
        rows = rows.filter(offering__in=list(offerings))
    own_last = rows.order_by(F("tenant_id").asc(nulls_first=True))
    return {row.offering_id: to_price(row) for row in own_last}


def listed_currencies(moment: datetime) -> list[str]:
    """Return the currencies of new tenants: the installation's, then others with list prices; one query."""
    listed = PriceVersion.objects.listed().filter(valid__contains=moment).order_by("currency")
    others = listed.exclude(currency=settings.CURRENCY).values_list("currency", flat=True).distinct()
    return [settings.CURRENCY, *others]


def lowest_on_demand_price(moment: datetime, *, currency: str, tenant: str = "") -> int | None:
    """Return the lowest hourly price of published on-demand offerings with a GPU; two queries.

    With a `tenant`, its own prices take precedence.
    """
    offerings = Offering.objects.published().filter(price_class=PriceClass.ON_DEMAND).exclude(gpu_model=CPU_MODEL_NAME)
    ids = offerings.values_list("pk", flat=True)
    known = prices_at(moment, currency=currency, offerings=ids, tenant=tenant)
    return min((price.nano_per_hour for price in known.values()), default=None)


def price_history(offering: str, *, currency: str, tenant: str) -> list[tuple[datetime, int]]:
    """Return an offering's hourly prices for a tenant over time, in order.

    Its own price takes precedence over the list price.
    """
    rows = sql_statements.fetch_rows(PRICE_HISTORY_SQL, [offering, currency, tenant])
    listed, own = ([row[1:] for row in rows if row[0] is of_tenant] for of_tenant in (False, True))
    in_order: list[InForce[int]] = merge_in_force(listed, own)
    return [(since, nano) for since, _, nano in in_order]


def merge_tenant_prices(known: Iterable[OfferingPrice]) -> list[OfferingPrice]:
    """Merge an offering's list prices with a tenant's own, in order of time.

    Each is cut to the time for which it is charged.
    """
    known = list(known)
    listed = [(price.since, price.until, price) for price in known if not price.own]
    own = [(price.since, price.until, price) for price in known if price.own]
    return [replace(price, since=since, until=until) for since, until, price in merge_in_force(listed, own)]


def quoted_prices(leases: Iterable[Lease]) -> dict[str, OfferingPrice]:
    """Return by lease the price of its quote; no query if no lease cites one.

    It is the most that the lease ever pays, and so what is held for it.
    """
    citing = {lease.pk: lease.offering_id for lease in leases if lease.quote_id}
    quotes = Quote.objects.filter(lease__in=citing).select_related("price_version") if citing else ()
    return {
        quote.lease_id: replace(to_price(quote.price_version), fixed=not quote.is_ceiling)
        for quote in quotes
        if quote.offering_id == citing[quote.lease_id]
    }


def price_paid(quoted: OfferingPrice | None, in_force: OfferingPrice | None) -> OfferingPrice | None:
    """Return what a lease pays now: the price in force, capped by its quote."""
    if quoted is None or (in_force and not quoted.fixed and in_force.nano_per_hour <= quoted.nano_per_hour):
        return in_force
    return quoted


def prices_paid(
    known: Iterable[OfferingPrice], quoted: OfferingPrice | None, *, since: datetime
) -> list[OfferingPrice]:
    """Return a lease's prices from a moment on, in order, capped by its quote."""
    merged = merge_tenant_prices(known)
    if quoted is None:
        return merged
    if quoted.fixed:
        return [replace(quoted, since=since, until=None)]
    in_force = [(price.since, price.until, price) for price in merged]
    capped = cap_prices(in_force, quoted, lambda price: price.nano_per_hour, since=since)
    return [replace(price, since=start, until=until) for start, until, price in capped]


def upcoming_prices(
    moment: datetime, *, currency: str, offerings: Iterable[str] | None = None
) -> dict[str, OfferingPrice]:
    """Return every offering's next list price after a moment; one query.

    `offerings` limits it to those named.
    """
    rows = PriceVersion.objects.listed().filter(currency=currency, valid__startswith__gt=moment)
    if offerings is not None:
        rows = rows.filter(offering__in=list(offerings))
    return {row.offering_id: to_price(row) for row in rows.order_by("-valid")}


def price_of(offering: Offering, *, currency: str, moment: datetime) -> OfferingPrice:
    """Return the price of one offering at a moment, or raise NoPrice."""
    found = prices_at(moment, currency=currency, offerings=[offering.pk]).get(offering.pk)
    if found is None:
        raise NoPrice(
            f"{offering.label} has no price in {currency} at {moment.isoformat()}, so it cannot be sold.",
            fix="Ask the operator to publish a price, or choose another offering.",
        )
    return found


def to_price(row: PriceVersion) -> OfferingPrice:
    """Convert a price version row to a Price."""
    return OfferingPrice(
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


def offerings_without_price(*, currency: str, moment: datetime) -> list[Offering]:
    """Return published offerings without a price, which cannot be bought."""
    known = prices_at(moment, currency=currency)
    return [offering for offering in Offering.objects.published().order_by("pk") if offering.pk not in known]


def was_charged(version: PriceVersion, *, beyond: datetime, rises: bool = False) -> bool:
    """Return whether the list price was charged for any second after that moment.

    Charges at the price of a quote do not count where that stays what is charged: if the quote is older
    than ceilings, or the price `rises`.
    """
    kept = Quote.objects.filter(price_version=version) if rises else Quote.objects.filter(is_ceiling=False)
    with system_scope():
        months = BillingPeriod.objects.filter(span__endswith__gt=beyond).values("pk")
        charges = RatedCharge.objects.filter(period_id__in=months, price_version_id=version.pk, e__gt=beyond)
        return charges.exclude(lease_id__in=kept.values("lease_id")).exists()


def check_price(currency: str, nano_per_hour: int) -> None:
    """Refuse an unknown currency or an implausible price."""
    if currency not in EXPONENTS:
        raise InvalidValue(
            "currency", f"{currency} is not a supported currency.", fix="Send an ISO 4217 code such as EUR."
        )
    if not 0 <= nano_per_hour <= MAX_NANO_PER_HOUR:
        raise InvalidValue(
            "nano_per_hour",
            "The price must be 0 to 1,000,000 per hour.",
            fix="Send the price of an hour in thousand-millionths of the currency: 3.79 is 3790000000.",
        )
