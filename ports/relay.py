"""The outbox's way out: claim rung hints, send them, forget them. At least once; the rows survive a crash."""

from datetime import datetime, timedelta

from django.db import connection, transaction

from ports import doorbell
from ports.models import Ring

CLAIM = timedelta(seconds=15)
BATCH = 200

CLAIM_SQL = """
UPDATE ports_ring SET claimed_until = %(until)s WHERE id IN (
  SELECT id FROM ports_ring WHERE at <= %(now)s AND (claimed_until IS NULL OR claimed_until < %(now)s)
   ORDER BY id LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id, task, subject, tenant_id
"""


def relay(*, now: datetime) -> int:
    """Send every hint that is due; return how many. Raises kombu's OperationalError when Valkey is away."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(CLAIM_SQL, {"now": now, "until": now + CLAIM, "batch": BATCH})
        rows = sorted(cursor.fetchall())
    sent: dict[tuple[str, str, str], None] = {}
    for _, task, subject, tenant_id in rows:
        # Several rings for one thing in one batch say the same: one look is enough.
        if (task, subject, tenant_id) not in sent:
            doorbell.send(task, subject, tenant_id)
            sent[task, subject, tenant_id] = None
    Ring.objects.filter(pk__in=[row[0] for row in rows]).delete()
    return len(rows)


def next_due() -> datetime | None:
    """Return when the next hint is due that nobody has claimed."""
    return Ring.objects.filter(claimed_until=None).order_by("at").values_list("at", flat=True).first()
