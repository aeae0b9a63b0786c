"""How fast Stripe is called: one pace for all processes, kept in one row, with a second's worth in hand."""

from django.conf import settings
from django.db import connection

from ports import clock
from ports.payments import Unreachable

# Moves the moment at which the row is idle again by one call, or nothing when that lies a second ahead.
TAKE = """
INSERT INTO billing_stripepace AS p (id, idle_at) VALUES (1, %(now)s::timestamptz + %(each)s * interval '1 microsecond')
ON CONFLICT (id) DO UPDATE
  SET idle_at = greatest(p.idle_at, %(now)s::timestamptz) + %(each)s * interval '1 microsecond'
  WHERE p.idle_at <= %(now)s::timestamptz + interval '1 second'
"""
WAIT_S = 2


def take() -> None:
    """Take leave to make one call, or raise Unreachable: nothing was sent."""
    each: int = 1_000_000 // settings.STRIPE_CALLS_PER_S
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"now": clock.now(), "each": each})
        if not cursor.rowcount:
            raise Unreachable("Stripe is asked as fast as it may be; this waits its turn", again_in_s=WAIT_S)
