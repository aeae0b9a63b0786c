"""Rate limit of calls to Stripe, shared by all processes in one database row.

It allows a burst of one second's calls.
"""

from django.conf import settings
from django.db import connection

from ports import clock
from ports.payments import GatewayUnreachable

# Moves idle_at ahead by one call; changes nothing when it is more than a second ahead already.
RESERVE_CALL = """
INSERT INTO billing_striperatelimit AS p (id, idle_at)
VALUES (1, %(now)s::timestamptz + %(each)s * interval '1 microsecond')
ON CONFLICT (id) DO UPDATE
  SET idle_at = greatest(p.idle_at, %(now)s::timestamptz) + %(each)s * interval '1 microsecond'
  WHERE p.idle_at <= %(now)s::timestamptz + interval '1 second'
"""
WAIT_S = 2


def reserve_call() -> None:
    """Reserve one call, or raise GatewayUnreachable if the limit is reached."""
    each: int = 1_000_000 // settings.STRIPE_CALLS_PER_S
    with connection.cursor() as cursor:
        cursor.execute(RESERVE_CALL, {"now": clock.now(), "each": each})
        if not cursor.rowcount:
            raise GatewayUnreachable("the rate limit of requests to Stripe is reached", again_in_s=WAIT_S)
