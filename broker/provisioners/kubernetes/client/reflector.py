"""Follow one kind of object: list once, then watch.

It lists again only when the server no longer knows our version. What it finds goes to a sink, in order.
It touches no database and keeps nothing but the version reached.
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client import api_errors, objects
from broker.provisioners.kubernetes.client.kinds import Kind
from broker.provisioners.kubernetes.client.objects import decode
from broker.provisioners.kubernetes.client.transport import Transport
from ports import clock, rng

log = structlog.get_logger(__name__)
SHORTEST_S, LONGEST_S = (290.0, 590.0)  # seconds of a watch, drawn at random so that agents do not reconnect together
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.8, 30.0
HEALTHY_S = 120.0  # after this long without a failure the next one counts as the first
AFTER_410_S = 5.0  # such a server has mostly just started, and is under most load
LIST_S = 60.0


class WatchSink(Protocol):
    """Receives what a reflector finds; called from the reflector's thread."""

    def paged(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        """Receive one page of a list."""

    def listed(self, kind: Kind, version: int) -> None:
        """Receive the end of a list: objects not among its pages are gone."""

    def begun(self, kind: Kind) -> None:
        """Receive the start of a list: discard the pages of an unfinished one."""

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        """Receive one change: ADDED, MODIFIED or DELETED."""

    def heard(self, kind: Kind, version: int) -> None:
        """Receive a bookmark: nothing else happened up to this version."""


class Reflector:
    """Follows one kind in one cluster."""

    def __init__(self, transport: Transport, kind: Kind, sink: WatchSink, *, labels: str = "") -> None:
        self._transport, self.kind, self._sink, self._labels = transport, kind, sink, labels
        self._rng = rng.Rng()
        self.version: int | None = None  # None: list first
        self.lists = 0
        self.is_open = False  # the server has accepted the watch, and it has not ended since

    def follow(self, going: Callable[[], bool]) -> None:
        """Follow until told to stop; retry failures with growing, randomised pauses."""
        troubles = 0
        while going():
            began = clock.monotonic()
            try:
                self.list_and_watch(going)
                troubles = 0
                continue
            except api_errors.VersionExpired:
                self.version, pause = None, self._rng.uniform(0, AFTER_410_S)
            except (ClusterUnreachable, api_errors.ApiRefusal) as trouble:
                troubles = 1 if clock.monotonic() - began > HEALTHY_S else troubles + 1
                longest = min(FIRST_PAUSE_S * 2**troubles, LONGEST_PAUSE_S)
                pause = max(self._rng.uniform(0, longest), getattr(trouble, "again_in_s", None) or 0)
                log.warning("watch interrupted", kind=self.kind.name, why=str(trouble), again_in_s=round(pause, 1))
            _sleep_while(pause, going)

    def list_and_watch(self, going: Callable[[], bool]) -> None:
        """List if necessary, then watch until the server ends the stream."""
        try:
            self._follow_stream(going)
        finally:
            self.is_open = False  # until the server accepts the next watch, however long that takes

    def _follow_stream(self, going: Callable[[], bool]) -> None:
        if self.version is None:
            self._list()
        lines = self._transport.within(LIST_S).watch(
            self.kind,
            version=str(self.version),
            labels=self._labels,
            seconds=self._rng.uniform(SHORTEST_S, LONGEST_S),
            opened=self._opened,
        )
        for line in lines:
            self._take(decode(line, objects.WatchLine))
            if not going():
                return

    def _list(self) -> None:
        """List page by page, so that no process holds everything at once."""
        self.lists += 1
        self._sink.begun(self.kind)
        version = 0
        for items, at in self._transport.within(LIST_S).pages(self.kind, labels=self._labels):
            version = int(at)
            self._sink.paged(self.kind, items, version)
        self._sink.listed(self.kind, version)
        self.version = version

    def _opened(self) -> None:
        self.is_open = True

    def _take(self, event: objects.WatchLine) -> None:
        if event.type == "ERROR":  # after HTTP 200 errors come inside the stream
            status = decode(event.object, objects.ApiStatus)
            raise api_errors.error_from_status(status.code, status)
        self.version = int(decode(event.object, objects.ObjectVersion).metadata.resource_version)
        if event.type == "BOOKMARK":
            self._sink.heard(self.kind, self.version)
        else:
            self._sink.changed(self.kind, event.type, event.object, self.version)


def _sleep_while(seconds: float, going: Callable[[], bool]) -> None:
    """Sleep, but wake up when told to stop."""
    end = clock.monotonic() + seconds
    while going() and (left := end - clock.monotonic()) > 0:
        clock.sleep(min(left, 0.2))
