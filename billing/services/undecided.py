"""What of money waits for an operator's word: disputes that are open, and corrections that others must approve.

Must run as staff or as a sweep.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

LOOK = """
SELECT d.count, d.since, c.count, c.second, c.since
  FROM (SELECT count(*), min(opened_at) AS since FROM billing_dispute WHERE status = 'open') d,
       (SELECT count(*), count(approver_id) AS second, min(proposed_at) AS since
          FROM billing_correction WHERE status = 'proposed') c
"""


@dataclass(frozen=True, slots=True)
class Undecided:
    """How many wait, and since when the oldest does."""

    disputes: int
    disputed_since: datetime | None
    corrections: int
    second: int  # of them, those that one has approved and that need another
    proposed_since: datetime | None


def look() -> Undecided:
    """Count them; one query."""
    with connection.cursor() as cursor:
        cursor.execute(LOOK)
        return Undecided(*cursor.fetchone())
