"""Buffer between the reflectors' threads and the thread that writes.

Watch events wait in it in order, for a moment.
"""

import queue
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import Kind
from ports import clock

BATCH_DELAY_S, MAX_BATCH = 0.05, 500


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One watch event: list started, page, list ended, change, or bookmark."""

    kind: Kind
    how: str  # BEGUN, PAGED, LISTED, ADDED, MODIFIED, DELETED or HEARD
    items: list[objects.Raw]
    version: int


class EventBuffer:
    """A sink that is emptied in batches, limited in time and number.

    Of each object only the fields that `kinds` reads are kept: the received bytes are many times
    larger.
    """

    def __init__(self, kinds: Mapping[Kind, type[Any]]) -> None:
        self._kinds = kinds
        self._queue: queue.Queue[WatchEvent] = queue.Queue(maxsize=10_000)  # a slow writer slows the readers

    def begun(self, kind: Kind) -> None:
        self._queue.put(WatchEvent(kind, "BEGUN", [], 0))

    def paged(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        self._queue.put(WatchEvent(kind, "PAGED", [self._narrow(kind, item) for item in items], version))

    def listed(self, kind: Kind, version: int) -> None:
        self._queue.put(WatchEvent(kind, "LISTED", [], version))

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        self._queue.put(WatchEvent(kind, how, [self._narrow(kind, item)], version))

    def heard(self, kind: Kind, version: int) -> None:
        self._queue.put(WatchEvent(kind, "HEARD", [], version))

    def _narrow(self, kind: Kind, item: objects.Raw) -> objects.Raw:
        return objects.reencode(item, self._kinds[kind])

    def batch(self, patience_s: float = 1.0) -> list[WatchEvent]:
        """Return the events that arrive within a moment of the first.

        Empty when none arrives within `patience_s`. A launch is five changes within a moment, and each
        batch costs a transaction.
        """
        try:
            found = [self._queue.get(timeout=patience_s)]
        except queue.Empty:
            return []
        if self._queue.qsize() < MAX_BATCH:
            clock.sleep(BATCH_DELAY_S)  # waking up for each event would cost more than waiting for several
        many = max(len(found[0].items), 1)
        while many < MAX_BATCH:
            try:
                found.append(self._queue.get_nowait())
            except queue.Empty:
                break
            many += max(len(found[-1].items), 1)
        return found
