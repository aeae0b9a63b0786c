"""Retention: deletion of old idempotency records, ended sessions and counts of requests and streams."""

from datetime import datetime

from django.contrib.sessions.models import Session

from tenants.services import idempotency, rate_limits, stream_seats


def delete_expired(*, now: datetime) -> int:
    """Delete old idempotency records, sessions and counts; return how many rows."""
    gone, _ = Session.objects.filter(expire_date__lt=now).delete()
    gone += idempotency.delete_expired(now=now) + rate_limits.delete_old_counts(now=now)
    return gone + stream_seats.delete_dead_processes(now=now)
