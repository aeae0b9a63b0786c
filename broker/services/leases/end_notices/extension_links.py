"""Signed links that offer one extension of a lease, as sent by e-mail.

A link grants nothing: whoever opens it signs in and needs the permission. The signature ties hours and end
to the notice, so that a link works once and not after another extension.
"""

from dataclasses import dataclass
from datetime import datetime

from django.core import signing

from broker.models import Lease

SALT = "gpubroker.lease-extension"
LINK_HOURS = (1, 4)  # offered in notices


@dataclass(frozen=True, slots=True)
class OfferedExtension:
    """One extension that a link offers."""

    hours: int
    ends_at: datetime  # the end that the notice was about


def sign_extension(lease_id: str, *, hours: int, ends_at: datetime) -> str:
    """Return the signed text of an offered extension."""
    return signing.dumps([lease_id, hours, ends_at.isoformat()], salt=SALT)


def read_extension(text: str, lease: Lease) -> OfferedExtension | None:
    """Return what a link offers for this lease; None for a wrong or altered link."""
    try:
        lease_id, hours, ends_at = signing.loads(text, salt=SALT)
    except signing.BadSignature:
        return None
    return OfferedExtension(hours, datetime.fromisoformat(ends_at)) if lease_id == lease.pk else None
