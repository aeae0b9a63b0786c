"""The lowest name of many that share something, without looking at all of them again and again."""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

SPARE = 64  # names that a heap may hold beyond twice those that there are, before it is made anew


class Lowest:
    """By key, the lowest of the names that have it.

    Names enter; that one has left is noticed when it comes up. A key that nobody asks for costs nothing.
    """

    def __init__(self, has: Callable[[int, str], bool]) -> None:
        """Take what tells whether a key is a name's now."""
        self._has = has
        self._heaps: dict[int, list[str]] = {}

    def enter(self, key: int, name: str, count: int) -> None:
        """Note that a name has a key now, which so many have."""
        heap = self._heaps.get(key)
        if heap is None:
            return
        if len(heap) > 2 * count + SPARE:  # mostly names that came and went unseen
            del self._heaps[key]
        else:
            heappush(heap, name)

    def first(self, key: int, names: Callable[[], Iterable[str]]) -> str:
        """Return the lowest name of a key; `names` tells all that have it, and there must be one."""
        heap = self._heaps.get(key)
        if heap is None:
            heap = self._heaps[key] = list(names())
            heapify(heap)
        while not self._has(key, heap[0]):
            heappop(heap)
        return heap[0]
