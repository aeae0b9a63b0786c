"""Where leases stand while they wait, and how long starts took: what pages tell about time."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import connection

from broker.models import Lease, Offering

# Counted over every tenant's queue, through the view that tells nobody whose they are.
POSITIONS = """
SELECT lease_id, position, waiting FROM (
  SELECT w.lease_id, w.mine,
         row_number() OVER (PARTITION BY o.gpu_model_id, o.region ORDER BY w.created_at, w.lease_id) AS position,
         count(*) OVER (PARTITION BY o.gpu_model_id, o.region) AS waiting
    FROM broker_waiting w JOIN broker_offering o ON o.id = w.offering_id) queue
 WHERE mine AND lease_id = ANY(%s)
"""
STARTS = """
SELECT extract(epoch FROM ready.at - asked.created_at)::int
  FROM broker_transition ready JOIN broker_lease asked ON asked.id = ready.lease_id
 WHERE ready.tenant_id = %(tenant)s AND ready.before = 'provisioning' AND ready.after = 'active'
   AND ready.offering_id = %(offering)s AND ready.prev_at - asked.created_at < interval '5 seconds'
 ORDER BY ready.xid DESC, ready.position DESC LIMIT %(most)s
"""


@dataclass(frozen=True)
class Position:
    """The how-manieth in the queue for one model in one region, and how long that queue is."""

    place: int
    of: int


def positions(leases: Collection[Lease]) -> dict[str, Position]:
    """Return the place of every one of these leases that waits; one query, none for none."""
    ids = [lease.pk for lease in leases]
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(POSITIONS, [ids])
        return {lease: Position(place, of) for lease, place, of in cursor.fetchall()}


def starts(tenant_id: str, offering: Offering, *, most: int = 200) -> Sequence[int]:
    """Return how many seconds the tenant's latest starts took that had not to queue, sorted."""
    with connection.cursor() as cursor:
        cursor.execute(STARTS, {"tenant": tenant_id, "offering": offering.pk, "most": most})
        return sorted(row[0] for row in cursor.fetchall())
