"""Everything that waits, of all tenants, oldest first. Must run as staff."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Coalesce

from broker.models import Lease
from broker.services.leases.precedence import PATIENCE

PAGE = 100

# percentile_disc: a wait that somebody really has, not one between two of them.
FIGURES = """
SELECT count(*), min(since), percentile_disc(0.05) WITHIN GROUP (ORDER BY since)
  FROM (SELECT coalesce(waits_since, created_at) AS since FROM broker_lease WHERE state = 'queued') queued
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """How long the queue is, and how old."""

    waiting: int
    oldest: timedelta | None
    p95: timedelta | None

    @property
    def overdue(self) -> bool:
        """Somebody has waited so long that cards are kept for them."""
        return self.oldest is not None and self.oldest > PATIENCE


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of the queue; `after` continues it where there is more."""

    leases: list[Lease]
    after: str


def figures(*, now: datetime) -> Figures:
    """Return the length of the queue and how long its oldest and its slowest twentieth have waited."""
    with connection.cursor() as cursor:
        cursor.execute(FIGURES)
        count, first, slow = cursor.fetchone()
    return Figures(count, now - first if first else None, now - slow if slow else None)


def waiting(*, after: str = "", limit: int = PAGE) -> Page:
    """Return who waits, oldest first, with tenant, project and offering; continue behind lease `after`."""
    queued = Lease.objects.filter(state="queued").annotate(since=Coalesce("waits_since", "created_at"))
    rows = queued.select_related("tenant", "project", "offering")
    seen = Lease.objects.filter(pk=after).first() if after else None
    if seen:
        rows = rows.filter(Q(since__gt=seen.queues_since) | Q(since=seen.queues_since, id__gt=seen.pk))
    rows = rows.order_by("since", "id")
    found = list(rows[: limit + 1])
    return Page(found[:limit], found[limit - 1].pk if len(found) > limit else "")
