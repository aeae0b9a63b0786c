"""List prices: a version is added, never edited; one that runs is closed where the next begins."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from billing.domain.money import EXPONENTS
from billing.models import BillingPeriod, PriceVersion, RateCard, RatedCharge
from billing.services import turns
from broker.models import Offering
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_sweep

LIST = "list"
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


def list_card() -> RateCard:
    """Return the one rate card that every tenant pays by."""
    return RateCard.objects.get_or_create(name=LIST)[0]


@transaction.atomic
def publish(
    *, offering: Offering, currency: str, nano_per_hour: int, since: datetime, actor: Actor, now: datetime
) -> PriceVersion:
    """Let a price hold from `since` on, until the next version that is already scheduled.

    `since` is rounded up to a whole second and lies in the future, unless it fills a gap: seconds that have
    a price keep it, seconds without one could not have been charged yet. Nobody charges meanwhile: `now` may
    have passed long ago when this is at last written, and what was charged since then stands as well.
    """
    _check(currency, nano_per_hour)
    if since.microsecond:
        since = since.replace(microsecond=0) + timedelta(seconds=1)
    turns.take()
    card = RateCard.objects.select_for_update().get(pk=list_card().pk)
    versions = PriceVersion.objects.filter(rate_card=card, offering=offering, currency=currency)
    running = versions.filter(valid__contains=since).first()
    following = versions.filter(valid__startswith__gt=since).order_by("valid").first()
    if running:
        if since < now or running.valid.lower == since or _charged(running, beyond=since):
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
        created_by=actor.label,
        created_at=now,
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
    )
    return version


def at(moment: datetime, *, currency: str, offerings: Iterable[str] | None = None) -> dict[str, Price]:
    """Return the price of every offering, or of those named, at a moment, in one query."""
    rows = PriceVersion.objects.filter(rate_card__name=LIST, currency=currency, valid__contains=moment)
    if offerings is not None:
        rows = rows.filter(offering__in=list(offerings))
    return {row.offering_id: priced(row) for row in rows}


def upcoming(moment: datetime, *, currency: str, offerings: Iterable[str] | None = None) -> dict[str, Price]:
    """Return the first price of every offering, or of those named, that begins after a moment; one query."""
    rows = PriceVersion.objects.filter(rate_card__name=LIST, currency=currency, valid__startswith__gt=moment)
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
    )


def unpriced(*, currency: str, moment: datetime) -> list[Offering]:
    """Return published offerings that nobody can buy because they have no price."""
    known = at(moment, currency=currency)
    return [offering for offering in Offering.objects.published().order_by("pk") if offering.pk not in known]


def _charged(version: PriceVersion, *, beyond: datetime) -> bool:
    """Tell whether anybody was charged this price for a second after that moment."""
    with as_sweep():
        months = BillingPeriod.objects.filter(span__endswith__gt=beyond).values("pk")
        charges = RatedCharge.objects.filter(period_id__in=months, price_version_id=version.pk, e__gt=beyond)
        return charges.exists()


def _check(currency: str, nano_per_hour: int) -> None:
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
