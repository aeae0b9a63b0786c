"""Putting a letter into the queue, in the transaction in which what it tells of came about.

Nobody is rung for: the beat finds it within half a minute, and a letter need not be faster.
"""

from collections.abc import Iterable
from datetime import datetime

from billing.models import Letter


def put(kind: str, about: str, *, tenant_id: str, now: datetime) -> None:
    """Have a letter written about something, once, however often this is asked for."""
    put_all(kind, [(tenant_id, about)], now=now)


def put_all(kind: str, about: Iterable[tuple[str, str]], *, now: datetime) -> None:
    """Have one written about each of these: whose it is, and its id."""
    letters = [
        Letter(tenant_id=tenant_id, kind=kind, about=subject, made_at=now, due_at=now)
        for tenant_id, subject in about
    ]
    Letter.objects.bulk_create(letters, ignore_conflicts=True)
