"""Relay of the outbox: claims due messages, sends them, deletes them.

Delivery is at least once; the rows survive a crash.
"""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from ports import outbox
from ports.models import OutboxMessage
from ports.postgres.sql_statements import query_rows

CLAIM_DURATION = timedelta(seconds=15)
BATCH = 50  # what an urgent message may wait for


def send_due_messages(*, now: datetime) -> int:
    """Send a batch of due messages, urgent ones first; return how many.

    Raises kombu's OperationalError when Valkey is unavailable.
    """
    with transaction.atomic():
        values = {"now": now, "until": now + CLAIM_DURATION, "batch": BATCH, "urgent": settings.URGENT_TASKS}
        rows = sorted(query_rows("ports/outbox/claim_due", values))
    messages: dict[outbox.TaskMessage, list[int]] = {}
    headers: dict[outbox.TaskMessage, dict[str, Any]] = {}
    for _, number, task, subject, tenant_id, request_id in rows:
        # Equal messages in one batch are sent once, with the first request id.
        messages.setdefault((task, subject, tenant_id), []).append(number)
        if request_id:
            headers.setdefault((task, subject, tenant_id), {"request_id": request_id})
    sent: list[int] = []
    try:
        for each, numbers in messages.items():
            outbox.send(*each, **headers.get(each, {}))
            sent += numbers
    except OperationalError:
        # Nothing is lost: the next run, soon or after a restart, finds them unclaimed.
        OutboxMessage.objects.filter(pk__in=[row[1] for row in rows]).exclude(pk__in=sent).update(claimed_until=None)
        raise
    finally:
        OutboxMessage.objects.filter(pk__in=sent).delete()
    return len(rows)


def next_due() -> datetime | None:
    """Return when the next unclaimed message is due."""
    return OutboxMessage.objects.filter(claimed_until=None).order_by("at").values_list("at", flat=True).first()
