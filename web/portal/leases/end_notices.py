"""Notices of leases that end soon, with links that extend them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from broker.models import Lease
from broker.models.leases import LeaseQuerySet
from broker.services.leases.end_notices import notice_records
from broker.services.leases.end_notices.extension_links import LINK_HOURS, sign_extension

MAX_NOTICES = 5


@dataclass(frozen=True, slots=True)
class ExtensionLink:
    """A link that offers one extension."""

    hours: int
    offer: str


@dataclass(frozen=True, slots=True)
class EndNotice:
    """A lease that ends soon, and why it was not extended automatically."""

    lease: Lease
    ends_at: datetime
    remaining: timedelta
    refusal: str

    @property
    def links(self) -> Sequence[ExtensionLink]:
        return [
            ExtensionLink(hours, sign_extension(self.lease.pk, hours=hours, ends_at=self.ends_at))
            for hours in LINK_HOURS
        ]


def end_notices_of(leases: LeaseQuerySet, *, now: datetime) -> list[EndNotice]:
    """Return a notice for each lease that ends soon, soonest first; two queries at most."""
    soon = list(notice_records.leases_ending_soon(leases, now=now)[:MAX_NOTICES])
    refused = notice_records.refused_extensions(soon)
    return [
        EndNotice(lease, lease.ends_at, lease.ends_at - now, refused.get(lease.pk, ""))
        for lease in soon
        if lease.ends_at is not None
    ]


def find_end_notices(lease: Lease, *, now: datetime) -> list[EndNotice]:
    """Return the notice of a lease that ends soon, or None."""
    if lease.ends_at is None or lease.ends_at - now > notice_records.longest_lead():
        return []
    return end_notices_of(Lease.objects.filter(pk=lease.pk), now=now)
