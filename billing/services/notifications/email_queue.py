"""Queue an e-mail in the same transaction as the event it reports.

Nothing is enqueued in the outbox: the beat finds it within half a minute, and an e-mail need not be
faster.
"""

from collections.abc import Iterable
from datetime import datetime

from billing.models import QueuedEmail


def enqueue_email(kind: str, about: str, *, tenant_id: str, now: datetime) -> None:
    """Queue an e-mail about a subject; repeated calls queue it once."""
    enqueue_emails(kind, [(tenant_id, about)], now=now)


def enqueue_emails(kind: str, about: Iterable[tuple[str, str]], *, now: datetime) -> None:
    """Queue one e-mail for each (tenant id, subject id)."""
    emails = [
        QueuedEmail(tenant_id=tenant_id, kind=kind, subject_id=subject, made_at=now, due_at=now)
        for tenant_id, subject in about
    ]
    QueuedEmail.objects.bulk_create(emails, ignore_conflicts=True)
