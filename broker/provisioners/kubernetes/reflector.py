"""Follows one kind of object: list once, then watch, and list again only when the server has forgotten where we were.

What it finds goes to a sink, in order. It touches no database and keeps nothing but the version it has reached.
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from broker.provisioners.base import Unanswered
from broker.provisioners.kubernetes import objects, refusals
from broker.provisioners.kubernetes.kinds import Kind
from broker.provisioners.kubernetes.objects import read
from broker.provisioners.kubernetes.transport import Transport
from ports import chance, clock

log = structlog.get_logger(__name__)
SHORTEST_S, LONGEST_S = (
    290.0,
    590.0,
)  # a watch; drawn anew each time, so that agents do not come back together
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.8, 30.0
HEALTHY_S = 120.0  # after so long without trouble the next trouble is treated as the first
AFTER_410_S = 5.0  # a server that forgot has mostly just started, and is at its weakest
LIST_S = 60.0


class Sink(Protocol):
    """Takes what a reflector finds; called from the reflector's own thread."""

    def paged(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        """Take one page of everything there is."""

    def listed(self, kind: Kind, version: int) -> None:
        """Take note that the pages since the last such word were everything: what is not among them is gone."""

    def begun(self, kind: Kind) -> None:
        """Forget the pages since the last list: it begins anew."""

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        """Take one change: ADDED, MODIFIED or DELETED."""

    def heard(self, kind: Kind, version: int) -> None:
        """Take the server's word that nothing happened up to a version."""


class Reflector:
    """One kind in one cluster."""

    def __init__(self, transport: Transport, kind: Kind, sink: Sink, *, labels: str = "") -> None:
        self._transport, self.kind, self._sink, self._labels = transport, kind, sink, labels
        self._chance = chance.Chance()
        self.version: int | None = None  # None: list first
        self.lists = 0
        self.is_open = False  # a server has agreed to tell us of every change, and has not gone since

    def follow(self, going: Callable[[], bool]) -> None:
        """Follow until told to stop; trouble is waited out, longer each time, never in step with others."""
        troubles = 0
        while going():
            began = clock.monotonic()
            try:
                self.once(going)
                troubles = 0
                continue
            except refusals.Expired:
                self.version, pause = None, self._chance.uniform(0, AFTER_410_S)
            except (Unanswered, refusals.Refusal) as trouble:
                troubles = 1 if clock.monotonic() - began > HEALTHY_S else troubles + 1
                longest = min(FIRST_PAUSE_S * 2**troubles, LONGEST_PAUSE_S)
                pause = max(self._chance.uniform(0, longest), getattr(trouble, "again_in_s", None) or 0)
                log.warning("watch broke", kind=self.kind.name, why=str(trouble), again_in_s=round(pause, 1))
            _nap(pause, going)

    def once(self, going: Callable[[], bool]) -> None:
        """List if need be, then watch until the server ends the stream."""
        try:
            self._follow_stream(going)
        finally:
            self.is_open = False  # until the server agrees anew, however long it takes to

    def _follow_stream(self, going: Callable[[], bool]) -> None:
        if self.version is None:
            self._list()
        lines = self._transport.within(LIST_S).watch(
            self.kind,
            version=str(self.version),
            labels=self._labels,
            seconds=self._chance.uniform(SHORTEST_S, LONGEST_S),
            opened=self._opened,
        )
        for line in lines:
            self._take(read(line, objects.Event))
            if not going():
                return

    def _list(self) -> None:
        """List page by page, so that nobody ever holds all of it."""
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

    def _take(self, event: objects.Event) -> None:
        if event.type == "ERROR":  # HTTP said 200 before: the trouble comes inside the stream
            status = read(event.object, objects.Status)
            raise refusals.refusal(status.code, status)
        self.version = int(read(event.object, objects.Version).metadata.resource_version)
        if event.type == "BOOKMARK":
            self._sink.heard(self.kind, self.version)
        else:
            self._sink.changed(self.kind, event.type, event.object, self.version)


def _nap(seconds: float, going: Callable[[], bool]) -> None:
    """Wait, but not past the end."""
    end = clock.monotonic() + seconds
    while going() and (left := end - clock.monotonic()) > 0:
        clock.sleep(min(left, 0.2))
