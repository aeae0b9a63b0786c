"""Between the reflectors' threads and the one that writes: what was found waits here in order, for a moment."""

import queue
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.provisioners.kubernetes import objects
from broker.provisioners.kubernetes.kinds import Kind
from ports import clock

MOMENT_S, MOST = 0.05, 500


@dataclass(frozen=True, slots=True)
class Found:
    """One thing a reflector said: a page of a list, that it was the last, a change, or that it heard something."""

    kind: Kind
    how: str  # BEGUN, PAGED, LISTED, ADDED, MODIFIED, DELETED or HEARD
    items: list[objects.Raw]
    version: int


class Waiting:
    """A sink that others empty in batches: of a moment at most, and at most so many at once.

    Of each object only what `kinds` reads of it is kept: the bytes it came in are many times that.
    """

    def __init__(self, kinds: Mapping[Kind, type[Any]]) -> None:
        self._kinds = kinds
        self._queue: queue.Queue[Found] = queue.Queue(maxsize=10_000)  # a slow writer slows the readers

    def begun(self, kind: Kind) -> None:
        self._queue.put(Found(kind, "BEGUN", [], 0))

    def paged(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        self._queue.put(Found(kind, "PAGED", [self._narrow(kind, item) for item in items], version))

    def listed(self, kind: Kind, version: int) -> None:
        self._queue.put(Found(kind, "LISTED", [], version))

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        self._queue.put(Found(kind, how, [self._narrow(kind, item)], version))

    def heard(self, kind: Kind, version: int) -> None:
        self._queue.put(Found(kind, "HEARD", [], version))

    def _narrow(self, kind: Kind, item: objects.Raw) -> objects.Raw:
        return objects.narrow(item, self._kinds[kind])

    def batch(self, patience_s: float = 1.0) -> list[Found]:
        """Return what came within a moment of the first; nothing when nothing comes for so long.

        A launch is five changes within a moment, and each batch costs a transaction.
        """
        try:
            found = [self._queue.get(timeout=patience_s)]
        except queue.Empty:
            return []
        if self._queue.qsize() < MOST:
            clock.sleep(MOMENT_S)  # to be woken for each of them would cost more than all of them
        many = max(len(found[0].items), 1)
        while many < MOST:
            try:
                found.append(self._queue.get_nowait())
            except queue.Empty:
                break
            many += max(len(found[-1].items), 1)
        return found
