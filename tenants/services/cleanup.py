"""Retention: deletion of old idempotency records and ended sessions."""

from datetime import datetime

from django.contrib.sessions.models import Session

from tenants.services import idempotency


def delete_expired(*, now: datetime) -> int:
    """Delete idempotency records older than a week and ended sessions; return how many."""
    gone, _ = Session.objects.filter(expire_date__lt=now).delete()
    return gone + idempotency.delete_expired(now=now)
