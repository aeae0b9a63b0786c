"""The outbox's way out: claim rung hints, send them, forget them. At least once; the rows survive a crash."""

from datetime import datetime, timedelta

from django.db import connection, transaction
from kombu.exceptions import OperationalError

from ports import doorbell
from ports.models import Ring

CLAIM = timedelta(seconds=15)
BATCH = 200

CLAIM_SQL = """
UPDATE ports_ring SET claimed_until = %(until)s WHERE id IN (
  SELECT id FROM ports_ring WHERE at <= %(now)s AND (claimed_until IS NULL OR claimed_until < %(now)s)
   ORDER BY at, id LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED)
RETURNING at, id, task, subject, tenant_id, request_id
"""


def relay(*, now: datetime) -> int:
    """Send every hint that is due; return how many. Raises kombu's OperationalError when Valkey is away."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(CLAIM_SQL, {"now": now, "until": now + CLAIM, "batch": BATCH})
        rows = sorted(cursor.fetchall())
    hints: dict[tuple[str, str, str], list[int]] = {}
    asked: dict[tuple[str, str, str], dict[str, str]] = {}
    for _, number, task, subject, tenant_id, request_id in rows:
        # Several rings for one thing in one batch say the same: one look is enough, and one request to name.
        hints.setdefault((task, subject, tenant_id), []).append(number)
        if request_id:
            asked.setdefault((task, subject, tenant_id), {"request_id": request_id})
    sent: list[int] = []
    try:
        for each, numbers in hints.items():
            doorbell.send(*each, **asked.get(each, {}))
            sent += numbers
    except OperationalError:
        # Nothing is lost: whoever comes next, soon or after a restart, finds them unclaimed.
        Ring.objects.filter(pk__in=[row[1] for row in rows]).exclude(pk__in=sent).update(claimed_until=None)
        raise
    finally:
        Ring.objects.filter(pk__in=sent).delete()
    return len(rows)


def next_due() -> datetime | None:
    """Return when the next hint is due that nobody has claimed."""
    return Ring.objects.filter(claimed_until=None).order_by("at").values_list("at", flat=True).first()
