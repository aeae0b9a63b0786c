"""Signed quotes: the client keeps the terms, signed so that they cannot be altered.

So quoting writes nothing, however often a form changes, and an unused quote leaves no row behind.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.signing import BadSignature, Signer

from billing.domain.pricing import hold_amount, line_amount
from billing.models.default_ids import quote_id
from billing.services.catalogue.price_list import OfferingPrice
from tenants.models import Project
from tenants.services.errors import Fix, ObjectNotFound

REQUEST_NEW_QUOTE = Fix("Request a new quote; the price may differ.", "POST", "/api/v1/quotes")
# Version of the signed form; a quote in an older form must be requested again.
QUOTE_FORMAT = 1
SIGNED_FIELDS = (
    "id",
    "tenant",
    "project",
    "offering",
    "version",
    "currency",
    "nano_per_hour",
    "quantity",
    "max_duration_s",
)


class UnknownQuote(ObjectNotFound):
    """The quote is not ours, or belongs to another tenant."""


@dataclass(frozen=True, slots=True)
class QuoteOffer:
    """A price promised for one lease on these terms or shorter, until it expires."""

    id: str
    tenant: str
    project: str
    offering: str
    version: int  # price version
    currency: str
    nano_per_hour: int  # per unit
    quantity: int
    max_duration_s: int
    made_at: datetime
    expires_at: datetime

    @property
    def hold_minor(self) -> int:
        return hold_amount(self.max_duration_s, **self._priced())

    @property
    def cap_minor(self) -> int:
        return line_amount(self.max_duration_s, **self._priced())

    @property
    def sealed(self) -> str:
        """The offer as a signed text."""
        terms = [
            QUOTE_FORMAT,
            *(getattr(self, name) for name in SIGNED_FIELDS),
            _format_time(self.made_at),
            _format_time(self.expires_at),
        ]
        return _signer().sign_object(terms)

    def _priced(self) -> dict[str, Any]:
        return {"quantity": self.quantity, "nano_per_hour": self.nano_per_hour, "currency": self.currency}


def make_offer(
    price: OfferingPrice, *, project: Project, quantity: int, max_duration_s: int, now: datetime
) -> QuoteOffer:
    """Promise the current price for the configured time; nothing is written."""
    return QuoteOffer(
        id=quote_id(),
        tenant=project.tenant_id,
        project=project.pk,
        offering=price.offering,
        version=price.version,
        currency=price.currency,
        nano_per_hour=price.nano_per_hour,
        quantity=quantity,
        max_duration_s=max_duration_s,
        made_at=now,
        expires_at=now + timedelta(seconds=settings.QUOTE_TTL_S),
    )


def verify_offer(sealed: str) -> QuoteOffer:
    """Verify a signed quote and return its offer, or raise UnknownQuote."""
    try:
        form, *terms, made, expires = _signer().unsign_object(sealed)
    except (BadSignature, ValueError, TypeError):
        raise unknown_quote() from None
    if form != QUOTE_FORMAT:
        raise unknown_quote()
    return QuoteOffer(
        **dict(zip(SIGNED_FIELDS, terms, strict=True)), made_at=_parse_time(made), expires_at=_parse_time(expires)
    )


def unknown_quote() -> UnknownQuote:
    return UnknownQuote("The quote was not found.", fix=REQUEST_NEW_QUOTE)


def _signer() -> Signer:
    return Signer(salt="gpubroker.quote")


def _format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
