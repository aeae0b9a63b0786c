"""Money matters that wait for an operator: open disputes and proposed corrections.

Requires staff or system scope.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

COUNT_SQL = """
SELECT d.count, d.since, c.count, c.second, c.since
  FROM (SELECT count(*), min(opened_at) AS since FROM billing_dispute WHERE status = 'open') d,
       (SELECT count(*), count(approver_id) AS second, min(proposed_at) AS since
          FROM billing_correction WHERE status = 'proposed') c
"""


@dataclass(frozen=True, slots=True)
class PendingDecisions:
    """Numbers of open decisions, and since when the oldest waits."""

    disputes: int
    disputed_since: datetime | None
    corrections: int
    second: int  # of them, those that need a second approval
    proposed_since: datetime | None


def count_pending_decisions() -> PendingDecisions:
    """Count the open decisions; one query."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT_SQL)
        return PendingDecisions(*cursor.fetchone())
