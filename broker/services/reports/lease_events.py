"""The transition ledger as an event stream in a stable order.

A position is (transaction id, number). Rows of transactions younger than the oldest open one are held
back, so that a reader never misses a row before its position (docs/decisions/0005). Both count for all
tenants, so a tenant sees positions as opaque ids only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ports.opaque_ids import decode_opaque_id, encode_opaque_id
from ports.postgres.sql_statements import query_rows

BATCH = 200
ID_PREFIX = "evt_"
START = "0-0"  # the position before the first event, for whoever wants them all
NUMBER_BITS = 48  # of the number in a position; the transaction id has the rest


class InvalidPosition(ValueError):
    """Raised when a text is not a valid stream position."""


@dataclass(frozen=True, order=True)
class EventPosition:
    """A reader's position in the stream."""

    xid: int = 0
    number: int = 0


@dataclass(frozen=True)
class LeaseEvent:
    """One state change of one lease."""

    id: str  # the event's position, as its tenant sees it
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
            "id": self.id,
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
            "actor_label": self.actor,
        }


def event_id(position: EventPosition, *, tenant_id: str) -> str:
    """Return the opaque id of the event at a position."""
    return ID_PREFIX + encode_opaque_id(position.xid << NUMBER_BITS | position.number, scope=f"event:{tenant_id}")


def parse_event_id(text: str, *, tenant_id: str) -> EventPosition:
    """Return the position of a client's event id, or raise InvalidPosition."""
    if text == START:
        return EventPosition()
    sealed = text.removeprefix(ID_PREFIX) if text.startswith(ID_PREFIX) else ""
    number = decode_opaque_id(sealed, scope=f"event:{tenant_id}")
    if number is None:
        raise InvalidPosition(f"{text[:40]!r} is not the ID of an event. Send the ID of the last event you received.")
    return EventPosition(number >> NUMBER_BITS, number & (1 << NUMBER_BITS) - 1)


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
    rows = query_rows("broker/reports/events_after", values)
    found = [(EventPosition(xid, number), event) for xid, number, *event in rows]
    return [LeaseEvent(event_id(at, tenant_id=tenant_id), at, *event) for at, event in found]


def latest_position(*, tenant_id: str) -> EventPosition:
    """Return the position of the newest event that may be shown."""
    return latest_positions([tenant_id]).get(tenant_id, EventPosition())


def latest_positions(tenant_ids: Sequence[str]) -> dict[str, EventPosition]:
    """Return the position of each tenant's newest event; tenants without events have none.

    Must run inside a scope that sees these tenants.
    """
    found = query_rows("broker/reports/latest_events", {"tenants": list(tenant_ids)})
    return {tenant: EventPosition(xid, number) for tenant, xid, number in found}
