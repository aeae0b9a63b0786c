"""A lease cites a quote: the promised price is written down for it, once, in the transaction that queues the lease."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import IntegrityError
from psycopg.errors import RestrictViolation

from billing.services.sealing import ASK_ANEW, Offer, UnknownQuote, opened, unknown
from broker.models import Lease
from ports import database
from tenants.services.refusals import Refused

# Whoever cites the same quote at the same time waits here for the other's transaction.
CITE = """
INSERT INTO billing_quote (id, tenant_id, lease_id, project_id, offering_id, price_version_id, currency, nano_per_hour,
       quantity, max_duration_s, hold_minor, cap_minor, made_at, expires_at, cited_at)
VALUES (%(id)s, %(tenant)s, %(lease)s, %(project)s, %(offering)s, %(version)s, %(currency)s, %(nano)s,
       %(quantity)s, %(lasts)s, %(hold)s, %(cap)s, %(made_at)s, %(expires_at)s, %(now)s)
    ON CONFLICT (id) DO NOTHING RETURNING id
"""


class QuoteExpired(Refused):
    code, status, title = "quote-expired", 410, "This quote has ended"


class QuoteUsed(Refused):
    code, status, title = "quote-used", 409, "This quote was used"


class QuoteMismatch(Refused):
    """The price was promised for something else."""

    code, status, title = "quote-mismatch", 409, "This quote is for something else"


NOT_KEPT = (UnknownQuote, QuoteExpired, QuoteUsed, QuoteMismatch)


def cite(lease: Lease, *, now: datetime) -> Callable[[str], None]:
    """Let a new lease have the price of the quote it cites, or raise Refused.

    What is returned waits for the answer, and wants to know the tenant's currency.
    """
    offer = opened(lease.cites)
    _check(offer, lease, now)
    cursor = database.prepared()
    with _still_true(offer):
        cursor.execute(CITE, _row(offer, lease, now))
    lease.quote_id = offer.id

    def judge(currency: str) -> None:
        if currency != offer.currency:
            raise QuoteMismatch(
                f"The quote is in {offer.currency}, not {currency}.", fix=ASK_ANEW, quote=offer.id
            )
        with cursor, _still_true(offer):
            if cursor.fetchone() is None:
                raise QuoteUsed(
                    f"Another lease was started with {offer.id}; a quote is for one.",
                    fix=ASK_ANEW,
                    quote=offer.id,
                )

    return judge


@contextmanager
def _still_true(offer: Offer) -> Iterator[None]:
    """Say in words when the database knows better: another price began just before the quote was made."""
    try:
        yield
    except IntegrityError as error:
        if not isinstance(error.__cause__, RestrictViolation):
            raise
        raise QuoteExpired(
            "The price changed in the moment in which this quote was made.", fix=ASK_ANEW, quote=offer.id
        ) from error


def _check(offer: Offer, lease: Lease, now: datetime) -> None:
    if (offer.tenant, offer.project) != (lease.tenant_id, lease.project_id):
        raise unknown()  # of others nobody hears that there is one
    if now >= offer.expires_at:
        ago = int((now - offer.expires_at).total_seconds())
        raise QuoteExpired(f"This quote ended {_since(ago)} ago.", fix=ASK_ANEW, quote=offer.id)
    odd = []
    if lease.offering_id != offer.offering:
        odd.append(f"offering {offer.offering}, not {lease.offering_id}")
    if lease.quantity != offer.quantity:
        odd.append(f"quantity {offer.quantity}, not {lease.quantity}")
    if lease.max_duration_s > offer.max_duration_s:
        odd.append(f"at most {offer.max_duration_s} s, not {lease.max_duration_s} s")
    if odd:
        raise QuoteMismatch(f"The quote is for {'; for '.join(odd)}.", fix=ASK_ANEW, quote=offer.id)


def _since(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"


def _row(offer: Offer, lease: Lease, now: datetime) -> dict[str, Any]:
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
