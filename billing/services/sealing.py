"""Quotes that nobody has cited yet are kept by whoever asked: their terms, sealed so that none can be changed.

Asking thus writes nothing, however often a form changes, and a quote that is not taken up leaves no row behind.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.signing import BadSignature, Signer

from billing.domain.pricing import at_most, cap
from billing.models.keys import quote_id
from billing.services.prices import Price
from tenants.models import Project
from tenants.services.refusals import Fix, Missing

ASK_ANEW = Fix("Ask for a new quote; the price may differ.", "POST", "/api/v1/quotes")
# Who has a seal of an older form is told to ask anew; that is what the first field is for.
FORM = 1
TERMS = (
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


class UnknownQuote(Missing):
    """We never made it, or it is somebody else's."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A price that is promised to whoever cites it in time, for one lease on these terms or shorter."""

    id: str
    tenant: str
    project: str
    offering: str
    version: int  # of the price
    currency: str
    nano_per_hour: int  # for one
    quantity: int
    max_duration_s: int
    made_at: datetime
    expires_at: datetime

    @property
    def hold_minor(self) -> int:
        return at_most(self.max_duration_s, **self._priced())

    @property
    def cap_minor(self) -> int:
        return cap(self.max_duration_s, **self._priced())

    @property
    def sealed(self) -> str:
        """The offer as a text that can be kept, but not changed."""
        terms = [
            FORM,
            *(getattr(self, name) for name in TERMS),
            _written(self.made_at),
            _written(self.expires_at),
        ]
        return _signer().sign_object(terms)

    def _priced(self) -> dict[str, Any]:
        return {"quantity": self.quantity, "nano_per_hour": self.nano_per_hour, "currency": self.currency}


def offer(price: Price, *, project: Project, quantity: int, max_duration_s: int, now: datetime) -> Offer:
    """Promise a price of this moment for as long as the operator lets it stand; nothing is written."""
    return Offer(
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
        expires_at=now + timedelta(seconds=settings.QUOTE_LASTS_S),
    )


def opened(sealed: str) -> Offer:
    """Return the offer of a text, or raise Missing for one that we never wrote."""
    try:
        form, *terms, made, expires = _signer().unsign_object(sealed)
    except (BadSignature, ValueError, TypeError):
        raise unknown() from None
    if form != FORM:
        raise unknown()
    return Offer(**dict(zip(TERMS, terms, strict=True)), made_at=_read(made), expires_at=_read(expires))


def unknown() -> UnknownQuote:
    return UnknownQuote("There is no such quote here.", fix=ASK_ANEW)


def _signer() -> Signer:
    return Signer(salt="gpubroker.quote")


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _read(text: str) -> datetime:
    return datetime.fromisoformat(text)
