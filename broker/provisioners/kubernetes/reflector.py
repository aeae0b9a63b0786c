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

    def listed(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        """Take everything there is: what is not among it is gone."""

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        """Take one change: ADDED, MODIFIED or DELETED."""

    def heard(self, kind: Kind, version: int) -> None:
        """Take the server's word that nothing happened up to a version."""


class Reflector:
    """One kind in one cluster."""

    def __init__(self, transport: Transport, kind: Kind, sink: Sink, *, labels: str = "") -> None:
        self._transport, self._kind, self._sink, self._labels = transport, kind, sink, labels
        self._chance = chance.Chance()
        self.version: int | None = None  # None: list first
        self.lists = 0

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
                log.warning("watch broke", kind=self._kind.name, why=str(trouble), again_in_s=round(pause, 1))
            _nap(pause, going)

    def once(self, going: Callable[[], bool]) -> None:
        """List if need be, then watch until the server ends the stream."""
        if self.version is None:
            items, version = self._transport.within(LIST_S).list_all(self._kind, labels=self._labels)
            self.lists += 1
            self.version = int(version)
            self._sink.listed(self._kind, items, self.version)
        lines = self._transport.within(LIST_S).watch(
            self._kind,
            version=str(self.version),
            labels=self._labels,
            seconds=self._chance.uniform(SHORTEST_S, LONGEST_S),
        )
        for line in lines:
            self._take(read(line, objects.Event))
            if not going():
                return

    def _take(self, event: objects.Event) -> None:
        if event.type == "ERROR":  # HTTP said 200 before: the trouble comes inside the stream
            status = read(event.object, objects.Status)
            raise refusals.refusal(status.code, status)
        self.version = int(read(event.object, objects.Thing).metadata.resource_version)
        if event.type == "BOOKMARK":
            self._sink.heard(self._kind, self.version)
        else:
            self._sink.changed(self._kind, event.type, event.object, self.version)


def _nap(seconds: float, going: Callable[[], bool]) -> None:
    """Wait, but not past the end."""
    end = clock.monotonic() + seconds
    while going() and (left := end - clock.monotonic()) > 0:
        clock.sleep(min(left, 0.2))
