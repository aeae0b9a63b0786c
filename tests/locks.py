"""Wait until other connections are blocked on a lock, without sleeping."""

import time

from django.db import connection

PATIENCE_S = 60.0
# In this test's own database: others have theirs on this server.
WAITING = """SELECT EXISTS (SELECT FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock')"""


def wait_for_lock_waiter() -> None:
    """Return as soon as a session waits for any lock."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute(WAITING)
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)
    raise AssertionError("nobody waits for a lock")
