"""The transition ledger as an event stream in a stable order.

A position is (transaction id, number). Rows of transactions younger than the oldest open one are held
back, so that a reader never misses a row before its position (docs/decisions/0005).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ports.postgres.sql_statements import query_rows

BATCH = 200


class InvalidPosition(ValueError):
    """Raised when a text is not a valid stream position."""


@dataclass(frozen=True, order=True)
class EventPosition:
    """A reader's position in the stream, written `<xid>-<number>`."""

    xid: int = 0
    number: int = 0

    def __str__(self) -> str:
        return f"{self.xid}-{self.number}"


@dataclass(frozen=True)
class LeaseEvent:
    """One state change of one lease."""

    position: EventPosition
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


def parse_position(text: str) -> EventPosition:
    """Parse a position that a client sent back; raise InvalidPosition if it is invalid."""
    xid, _, number = text.partition("-")
    if not (text.isascii() and xid.isdigit() and number.isdigit() and len(text) <= 40):
        raise InvalidPosition(f"{text[:40]!r} is not a position. Send the ID of an event.")
    position = EventPosition(int(xid), int(number))
    if max(position.xid, position.number) >= 2**63:
        raise InvalidPosition(f"{text!r} is larger than any position. Send the ID of an event.")
    return position


def events_after(
    position: EventPosition, *, tenant_id: str, within: Iterable[str] | None = None, limit: int = BATCH
) -> list[LeaseEvent]:
    """Return a tenant's next events, or only those of projects at or below `within`.

    Must run inside the tenant's row-level security scope.
    """
    values = {
        "tenant": tenant_id,
        "xid": position.xid,
        "position": position.number,
        "within": None if within is None else sorted(within),
        "limit": limit,
    }
    return [
        LeaseEvent(EventPosition(xid, number), *event)
        for xid, number, *event in query_rows("broker/reports/events_after", values)
    ]


def latest_position(*, tenant_id: str) -> EventPosition:
    """Return the position of the newest event that may be shown."""
    newest = query_rows("broker/reports/latest_event", {"tenant": tenant_id})
    return EventPosition(*newest[0]) if newest else EventPosition()
