"""Queue positions of waiting leases, and how long recent starts took."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from broker.models import Lease, Offering
from ports.postgres.sql_statements import query_rows


@dataclass(frozen=True)
class QueuePosition:
    """A lease's position in the queue of its pool, and the queue's length."""

    place: int
    of: int


def load_queue_positions(leases: Collection[Lease]) -> dict[str, QueuePosition]:
    """Return the queue position of each waiting lease; one query, none for none."""
    ids = [lease.pk for lease in leases]
    if not ids:
        return {}
    return {lease: QueuePosition(place, of) for lease, place, of in query_rows("broker/queue/queue_positions", [ids])}


def recent_start_times(tenant_id: str, offering: Offering, *, most: int = 200) -> Sequence[int]:
    """Return the tenant's recent start times in seconds, sorted, without queueing."""
    values = {"tenant": tenant_id, "offering": offering.pk, "most": most}
    return sorted(seconds for (seconds,) in query_rows("broker/queue/start_times", values))
