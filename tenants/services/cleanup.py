"""Retention: deletion of old idempotency records, ended sessions and counts of requests."""

from datetime import datetime

from django.contrib.sessions.models import Session

from tenants.services import idempotency, rate_limits


def delete_expired(*, now: datetime) -> int:
    """Delete old idempotency records, sessions and counts; return how many rows."""
    gone, _ = Session.objects.filter(expire_date__lt=now).delete()
    return gone + idempotency.delete_expired(now=now) + rate_limits.delete_old_counts(now=now)
