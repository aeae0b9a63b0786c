"""The lowest of many names with the same key, without repeated scans."""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

HEAP_SLACK = 64  # outdated names a heap may hold beyond twice the current ones, before it is rebuilt


class LowestNames:
    """By key, the lowest of the names that have it.

    Names are entered; that one no longer has a key is noticed when it comes up. A key that nobody
    requests costs nothing.
    """

    def __init__(self, has: Callable[[int, str], bool]) -> None:
        """Take the function that tells whether a name has a key now."""
        self._has = has
        self._heaps: dict[int, list[str]] = {}

    def add(self, key: int, name: str, count: int) -> None:
        """Record that a name now has a key, which `count` names have."""
        heap = self._heaps.get(key)
        if heap is None:
            return
        if len(heap) > 2 * count + HEAP_SLACK:  # most of its names are outdated
            del self._heaps[key]
        else:
            heappush(heap, name)

    def lowest(self, key: int, names: Callable[[], Iterable[str]]) -> str:
        """Return the lowest name of a key; `names` lists all, at least one."""
        heap = self._heaps.get(key)
        if heap is None:
            heap = self._heaps[key] = list(names())
            heapify(heap)
        while not self._has(key, heap[0]):
            heappop(heap)
        return heap[0]
