"""What happened, in an order that never changes: the chain of transitions as a stream.

A position is (transaction id, number). Rows of transactions younger than the oldest one still open are held
back, so that nobody who has read up to a position is ever owed a row before it (docs/decisions/0005).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

BATCH = 200

# The oldest transaction that is open here: another database of the same server may keep one open for hours. One
# that ended since our snapshot was taken has no lock left and counts as open, for its rows are not in the snapshot.
HORIZON = """(
SELECT coalesce(min(open.xid::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
  FROM pg_snapshot_xip(pg_current_snapshot()) AS open (xid)
 WHERE NOT EXISTS (
       SELECT FROM pg_locks held JOIN pg_stat_activity holder ON holder.pid = held.pid
        WHERE held.locktype = 'transactionid' AND held.mode = 'ExclusiveLock' AND held.granted
          AND held.transactionid = open.xid::xid
          AND holder.datid <> (SELECT oid FROM pg_database WHERE datname = current_database())))
"""
# Asked of rows that may be held back alone: whoever waits for news in vain need not look at every lock.
SHOWN = f"""CASE WHEN xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint THEN true ELSE xid < {HORIZON} END"""

AFTER = f"""
SELECT t.xid, t.position, t.at, t.recorded_at, t.lease_id, l.name, t.seq, t.generation, t.project_id,
       t.offering_id, t.before, t.after, t.reason, t.cause,
       CASE t.actor_kind WHEN 'staff' THEN 'an operator' ELSE t.actor_label END
  FROM broker_transition t JOIN broker_lease l ON l.id = t.lease_id
 WHERE t.tenant_id = %(tenant)s AND (t.xid, t.position) > (%(xid)s, %(position)s)
   AND {SHOWN}
   AND (%(within)s::text[] IS NULL OR t.project_id IN (
        SELECT id FROM tenants_project WHERE path::text[] && %(within)s::text[]))
 ORDER BY t.xid, t.position LIMIT %(limit)s
"""
LATEST = f"""
SELECT coalesce(max(xid), 0), coalesce(max(position), 0) FROM (
  SELECT xid, position FROM broker_transition
   WHERE tenant_id = %(tenant)s AND {SHOWN}
   ORDER BY xid DESC, position DESC LIMIT 1) newest
"""


class NoPosition(ValueError):
    """The text is no position of the stream."""


@dataclass(frozen=True, order=True)
class Position:
    """Where a reader stands in the stream; written `<xid>-<number>`."""

    xid: int = 0
    number: int = 0

    def __str__(self) -> str:
        return f"{self.xid}-{self.number}"


@dataclass(frozen=True)
class Event:
    """One step of one lease."""

    position: Position
    at: datetime
    recorded_at: datetime
    lease_id: str
    lease_name: str
    seq: int
    generation: int
    project_id: str
    offering_id: str
    before: str
    after: str
    end_reason: str
    cause: str
    actor: str

    @property
    def type(self) -> str:
        return f"lease.{self.after}"

    def as_json(self) -> dict[str, Any]:
        return {
            "id": str(self.position),
            "type": self.type,
            "at": self.at.isoformat().replace("+00:00", "Z"),
            "lease": self.lease_id,
            "name": self.lease_name,
            "seq": self.seq,
            "generation": self.generation,
            "project": self.project_id,
            "offering": self.offering_id,
            "before": self.before or None,
            "after": self.after,
            "end_reason": None if self.end_reason == "none" else self.end_reason,
            "cause": self.cause,
            "actor": self.actor,
        }


def read_position(text: str) -> Position:
    """Read a position as a client sent it back, or raise NoPosition."""
    xid, _, number = text.partition("-")
    if not (text.isascii() and xid.isdigit() and number.isdigit() and len(text) <= 40):
        raise NoPosition(f"{text[:40]!r} is no position; send back the id of an event.")
    position = Position(int(xid), int(number))
    if max(position.xid, position.number) >= 2**63:
        raise NoPosition(f"{text!r} is larger than any position.")
    return position


def after(
    position: Position, *, tenant_id: str, within: Iterable[str] | None = None, limit: int = BATCH
) -> list[Event]:
    """Return the next events of a tenant, or only of projects at or below `within`. Inside the tenant's wall."""
    with connection.cursor() as cursor:
        cursor.execute(
            AFTER,
            {
                "tenant": tenant_id,
                "xid": position.xid,
                "position": position.number,
                "within": None if within is None else sorted(within),
                "limit": limit,
            },
        )
        return [Event(Position(row[0], row[1]), *row[2:]) for row in cursor.fetchall()]


def latest(*, tenant_id: str) -> Position:
    """Return the position of the newest event that may be shown: where somebody who missed nothing stands."""
    with connection.cursor() as cursor:
        cursor.execute(LATEST, {"tenant": tenant_id})
        return Position(*cursor.fetchone())
