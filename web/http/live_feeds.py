"""What the live streams send: lease events, and the log of one lease."""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.logs import log_pages
from broker.services.reports import lease_events
from broker.services.reports.lease_events import InvalidPosition, LeaseEvent
from tenants.services.authentication import Visitor
from web.api.events import STREAM_PATH
from web.api.lease_logs import line_as_json
from web.http.stream_changes import Subject, Topic

__all__ = ["FeedBatch", "InvalidPosition", "LiveFeed", "UnknownSubject", "feed_of"]
# An ingress may still route the address of the list here, as charts before did.
EVENTS_PATHS = (STREAM_PATH, "/api/v1/events")
LOG_PATH = re.compile(
    r"/api/v1/events/logs/(?P<lease>[A-Za-z0-9_]{1,40})", re.ASCII
)  # below the events: one rule routes both
LOG_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)
LOG_BATCH, FIRST_LINES = 500, 500


class UnknownSubject(Exception):
    """The visitor cannot see what the stream is about."""


@dataclass(frozen=True, slots=True)
class FeedBatch:
    """The next frames of a feed, and the position after them."""

    position: str
    subject: Subject  # what to watch for more
    frames: tuple[bytes, ...] = ()
    start: str = ""  # the position before them, where that is not the one that was asked for
    is_full: bool = False  # there may be more at once
    ended: bool = False  # there will never be more


class LiveFeed(Protocol):
    """What one path streams."""

    def read(self, visitor: Visitor, position: str, *, now: datetime) -> FeedBatch:
        """Return what is new since a position, in the visitor's transaction.

        An empty position is the present. Raises InvalidPosition for a text that is none.
        """


class EventFeed:
    """Every transition of every lease that the visitor may see."""

    def read(self, visitor: Visitor, position: str, *, now: datetime) -> FeedBatch:
        tenant = visitor.tenant.pk
        subject = Subject(Topic.EVENTS, tenant)
        if not position:
            latest = lease_events.latest_position(tenant_id=tenant)
            return FeedBatch(lease_events.event_id(latest, tenant_id=tenant), subject)
        stood = lease_events.parse_event_id(position, tenant_id=tenant)
        within = visitor.grants.projects("leases.read")
        found = lease_events.events_after(stood, tenant_id=tenant, within=within)
        return FeedBatch(
            found[-1].id if found else position,
            subject,
            tuple(_event_frame(event) for event in found),
            is_full=len(found) >= lease_events.BATCH,
        )


@dataclass(frozen=True)
class LogFeed:
    """The log of one lease: its newest lines, then what is written."""

    lease_id: str

    def read(self, visitor: Visitor, position: str, *, now: datetime) -> FeedBatch:
        if position and not LOG_POSITION.fullmatch(position):
            raise InvalidPosition(f"{position[:40]!r} is not the number of a line. Send the ID of an event.")
        lease = Lease.objects.select_related("project").filter(pk=self.lease_id, tenant=visitor.tenant.pk).first()
        if lease is None or not visitor.grants.may("leases.read", lease.project.path):
            raise UnknownSubject("This lease does not exist.")
        log_pages.follow_log(lease, now=now)
        if position:
            page = log_pages.read_lines_after(lease, int(position), limit=LOG_BATCH)
        else:
            page = log_pages.read_last_lines(lease, limit=FIRST_LINES)
        log = log_pages.read_log_state(lease)
        is_complete = lease.state == LeaseState.RELEASED and (log.completed_at is not None or log.next_line == 1)
        is_full = bool(position) and page.has_more
        frames = tuple(_frame(str(line.number), "line", line_as_json(line)) for line in page.lines)
        start = str(page.lines[0].number - 1) if page.lines else ""
        return FeedBatch(
            str(page.next_after),
            Subject(Topic.LOG, lease.pk),
            frames,
            start,
            is_full=is_full,
            ended=is_complete and not is_full,
        )


def feed_of(path: str) -> LiveFeed | None:
    """Return the feed of a path; None if it has none."""
    if path in EVENTS_PATHS:
        return EventFeed()
    found = LOG_PATH.fullmatch(path)
    return LogFeed(found["lease"]) if found else None


def _event_frame(event: LeaseEvent) -> bytes:
    return _frame(event.id, event.type, event.as_json())


def _frame(position: str, kind: str, body: dict[str, Any]) -> bytes:
    return f"id: {position}\nevent: {kind}\ndata: {json.dumps(body, ensure_ascii=False)}\n\n".encode()
