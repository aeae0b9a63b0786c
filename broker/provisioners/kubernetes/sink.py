"""Between the reflectors' threads and the one that writes: what was found waits here in order, for a moment."""

import queue
from dataclasses import dataclass

from broker.provisioners.kubernetes import objects
from broker.provisioners.kubernetes.kinds import Kind
from ports import clock

MOMENT_S, MOST = 0.1, 500


@dataclass(frozen=True)
class Found:
    """One thing a reflector said: a whole list, a change, or that it heard something."""

    kind: Kind
    how: str  # LISTED, ADDED, MODIFIED, DELETED or HEARD
    items: list[objects.Raw]
    version: int


class Waiting:
    """A sink that others empty in batches: at most a moment old, at most so many at once."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Found] = queue.Queue(maxsize=10_000)  # a slow writer slows the readers

    def listed(self, kind: Kind, items: list[objects.Raw], version: int) -> None:
        self._queue.put(Found(kind, "LISTED", items, version))

    def changed(self, kind: Kind, how: str, item: objects.Raw, version: int) -> None:
        # Copied: the line it is cut from would be kept alive as a whole.
        self._queue.put(Found(kind, how, [item.copy()], version))

    def heard(self, kind: Kind, version: int) -> None:
        self._queue.put(Found(kind, "HEARD", [], version))

    def batch(self, patience_s: float = 1.0) -> list[Found]:
        """Return what came within a moment of the first; nothing when nothing comes for so long."""
        try:
            found = [self._queue.get(timeout=patience_s)]
        except queue.Empty:
            return []
        end = clock.monotonic() + MOMENT_S
        while len(found) < MOST and (left := end - clock.monotonic()) > 0:
            try:
                found.append(self._queue.get(timeout=left))
            except queue.Empty:
                break
        return found
