"""Exchange rates by which VAT is stated in the supplier's currency; an operator adds them."""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import transaction

from billing.domain.money import EXPONENTS, exponent_of, half_up
from billing.models import ExchangeRate, Invoice
from billing.models.accounting import MAX_SOURCE_LENGTH
from billing.services.tax import tax_determination
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue

RATE_PLACES = 6
MAX_AGE = timedelta(days=45)  # an older rate is not one of that month
RATE = re.compile(r"(?P<whole>[0-9]{1,6})(?:\.(?P<part>[0-9]{1,6}))?")
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ConvertedTax:
    """An invoice's tax in the supplier's currency, and the rate it was converted at."""

    minor: int
    rate: ExchangeRate


def parse_rate(text: str) -> int:
    """Parse a rate such as 0.921234, in 10⁻⁶; raises InvalidValue."""
    found = RATE.fullmatch(text.strip())
    rate = int(found["whole"] + (found["part"] or "").ljust(RATE_PLACES, "0")) if found else 0
    if not rate:
        raise InvalidValue(
            "rate", "The rate is not a number such as 0.92 with at most six decimals.", fix="Enter it again."
        )
    return rate


@transaction.atomic
def add_exchange_rate(*, currency: str, day: date, rate: int, source: str, actor: Actor, now: datetime) -> ExchangeRate:
    """Add the rate of a currency on a day; rates never change.

    Raises InvalidValue for an unknown currency, a future day or a missing source.
    """
    own = tax_determination.supplier_currency()
    if currency not in EXPONENTS or currency == own:
        raise InvalidValue("currency", f"The rate must be of a known currency other than {own}.", fix="Send USD.")
    if day > now.date():
        raise InvalidValue("day", "The day is in the future.", fix="Add the rate once it is published.")
    words = " ".join(source.split())
    if not 0 < len(words) <= MAX_SOURCE_LENGTH:
        raise InvalidValue("source", "The source of the rate is missing or too long.", fix="Enter for example ECB.")
    known = ExchangeRate.objects.filter(currency=currency, own=own, day=day).first()
    if known and known.rate == rate:
        return known
    if known:
        raise InvalidValue(
            "day", f"{currency} already has a rate on {day.isoformat()}.", fix="Rates never change; use another day."
        )
    made = ExchangeRate.objects.create(
        currency=currency, own=own, day=day, rate=rate, source=words, created_by=actor.label, created_at=now
    )
    audit.record(
        "tax.exchange-rate", made, f"{currency} in {own}", actor=actor, now=now, day=day.isoformat(), rate=rate
    )
    return made


def rate_on(currency: str, own: str, day: date, *, known_at: datetime | None = None) -> ExchangeRate | None:
    """Return the latest rate up to a day, leaving out rates added after `known_at`."""
    rows = ExchangeRate.objects.filter(currency=currency, own=own, day__lte=day, day__gt=day - MAX_AGE)
    if known_at is not None:
        rows = rows.filter(created_at__lte=known_at)
    return rows.order_by("-day").first()


def converted_tax(invoice: Invoice, tax: int) -> ConvertedTax | None:
    """Return tax of an invoice in the supplier's currency.

    None if the invoice is in that currency, or if there is no rate. The rate is that of the last day of the
    month, as it was known at finalization.
    """
    own = tax_determination.supplier_currency()
    if not invoice.treatment or invoice.currency == own or invoice.finalized_at is None:
        return None
    last = (invoice.period.span.upper - SECOND).date()
    rate = rate_on(invoice.currency, own, last, known_at=invoice.finalized_at)
    return ConvertedTax(convert(tax, invoice.currency, own, rate.rate), rate) if rate else None


def convert(minor: int, currency: str, own: str, rate: int) -> int:
    """Convert minor units at a rate in 10⁻⁶, rounded once."""
    return half_up(minor * rate * 10 ** exponent_of(own), 10 ** (exponent_of(currency) + RATE_PLACES))
