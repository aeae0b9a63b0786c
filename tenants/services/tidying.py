"""What is kept for a while only: answers to keyed requests, and sessions that have ended."""

from datetime import datetime

from django.contrib.sessions.models import Session

from tenants.services import answers


def forget_old(*, now: datetime) -> int:
    """Drop answers older than a week and sessions past their end; returns how many rows went."""
    gone, _ = Session.objects.filter(expire_date__lt=now).delete()
    return gone + answers.forget_old(now=now)
