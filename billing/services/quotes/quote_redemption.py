"""Redeem a quote for a lease: store the promised price once.

This happens in the transaction that queues the lease.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from psycopg.errors import RestrictViolation

from billing.services.quotes.quote_signatures import (
    REQUEST_NEW_QUOTE,
    QuoteOffer,
    UnknownQuote,
    unknown_quote,
    verify_offer,
)
from broker.models import Lease
from ports.postgres import sql_statements
from tenants.services.errors import ProblemError

# A concurrent redemption of the same quote waits here for the first one's transaction.
INSERT_QUOTE_SQL = """
INSERT INTO billing_quote (id, tenant_id, lease_id, project_id, offering_id, price_version_id, currency, nano_per_hour,
       quantity, max_duration_s, hold_minor, cap_minor, made_at, expires_at, cited_at)
VALUES (%(id)s, %(tenant)s, %(lease)s, %(project)s, %(offering)s, %(version)s, %(currency)s, %(nano)s,
       %(quantity)s, %(lasts)s, %(hold)s, %(cap)s, %(made_at)s, %(expires_at)s, %(now)s)
    ON CONFLICT (id) DO NOTHING RETURNING id
"""


class QuoteExpired(ProblemError):
    code, status, title = "quote-expired", 410, "The quote has expired"


class QuoteUsed(ProblemError):
    code, status, title = "quote-used", 409, "The quote was already used"


class QuoteMismatch(ProblemError):
    """The quote was made for a different request."""

    code, status, title = "quote-mismatch", 409, "The quote does not match the request"


QUOTE_ERRORS = (UnknownQuote, QuoteExpired, QuoteUsed, QuoteMismatch)


def redeem_quote(lease: Lease, *, now: datetime) -> Callable[[str], None]:
    """Give a new lease the price of the quote it cites, or raise Refused.

    The returned function waits for the database's answer and takes the tenant's currency.
    """
    offer = verify_offer(lease.quote_token)
    _check_offer(offer, lease, now)
    cursor = sql_statements.prepared_cursor()
    with _translate_price_change(offer):
        cursor.execute(INSERT_QUOTE_SQL, _quote_row(offer, lease, now))
    lease.quote_id = offer.id

    def check(currency: str) -> None:
        if currency != offer.currency:
            raise QuoteMismatch(
                f"The quote is in {offer.currency}, not {currency}.", fix=REQUEST_NEW_QUOTE, quote=offer.id
            )
        with cursor, _translate_price_change(offer):
            if cursor.fetchone() is None:
                raise QuoteUsed(
                    f"Another lease was started with {offer.id}. A quote can be used once.",
                    fix=REQUEST_NEW_QUOTE,
                    quote=offer.id,
                )

    return check


@contextmanager
def _translate_price_change(offer: QuoteOffer) -> Iterator[None]:
    """Raise QuoteExpired if the database finds that the price changed before the quote."""
    try:
        yield
    except IntegrityError as error:
        if not isinstance(error.__cause__, RestrictViolation):
            raise
        raise QuoteExpired(
            "The price changed while the quote was created.", fix=REQUEST_NEW_QUOTE, quote=offer.id
        ) from error


def _check_offer(offer: QuoteOffer, lease: Lease, now: datetime) -> None:
    if (offer.tenant, offer.project) != (lease.tenant_id, lease.project_id):
        raise unknown_quote()  # do not reveal that somebody else's quote exists
    if now >= offer.expires_at:
        ago = int((now - offer.expires_at).total_seconds())
        raise QuoteExpired(f"The quote expired {_format_age(ago)} ago.", fix=REQUEST_NEW_QUOTE, quote=offer.id)
    mismatches = []
    if lease.offering_id != offer.offering:
        mismatches.append(f"offering {offer.offering}, not {lease.offering_id}")
    if lease.quantity != offer.quantity:
        mismatches.append(f"quantity {offer.quantity}, not {lease.quantity}")
    if lease.max_duration_s > offer.max_duration_s:
        mismatches.append(f"at most {offer.max_duration_s} s, not {lease.max_duration_s} s")
    if mismatches:
        raise QuoteMismatch(f"The quote is for {'; for '.join(mismatches)}.", fix=REQUEST_NEW_QUOTE, quote=offer.id)


def _format_age(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"


def _quote_row(offer: QuoteOffer, lease: Lease, now: datetime) -> dict[str, Any]:
    return {
        "id": offer.id,
        "tenant": offer.tenant,
        "lease": lease.pk,
        "project": offer.project,
        "offering": offer.offering,
        "version": offer.version,
        "currency": offer.currency,
        "nano": offer.nano_per_hour,
        "quantity": offer.quantity,
        "lasts": offer.max_duration_s,
        "hold": offer.hold_minor,
        "cap": offer.cap_minor,
        "made_at": offer.made_at,
        "expires_at": offer.expires_at,
        "now": now,
    }
