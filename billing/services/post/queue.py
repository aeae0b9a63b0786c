"""Putting a letter into the queue, in the transaction in which what it tells of came about.

Nobody is rung for: the beat finds it within half a minute, and a letter need not be faster.
"""

from datetime import datetime

from billing.models import Letter


def put(kind: str, about: str, *, tenant_id: str, now: datetime) -> None:
    """Have a letter written about something, once, however often this is asked for."""
    letter = Letter(tenant_id=tenant_id, kind=kind, about=about, made_at=now, due_at=now)
    Letter.objects.bulk_create([letter], ignore_conflicts=True)
