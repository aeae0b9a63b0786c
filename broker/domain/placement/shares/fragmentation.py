"""Fragmentation of a node: free capacity useless to the next request, as in FGD."""

from bisect import bisect_right
from collections.abc import Mapping

from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, NodeCapacity, ShareRequest

# By what is left on a GPU: the part of it, in thousandths, that is useless to an average request.
LossByFree = list[float]


class FragmentationMeasure:
    """Expected thousandths of GPUs on a node that a random request cannot use.

    Requests are drawn as often as they occur. A GPU cannot serve a request when too little is left
    on it, and all GPUs of a node are when it does not fit there at all: too few processors or too few
    unused GPUs.
    """

    def __init__(self, popular: Mapping[ShareRequest, float]) -> None:
        """Take the frequency of each request; requests without a GPU are ignored."""
        requests: dict[tuple[int, int, int], float] = {}
        for request, times in popular.items():
            if request.gpus:
                key = request.cpu, request.gpus, request.share
                requests[key] = requests.get(key, 0.0) + times
        total = sum(requests.values())
        self._frequencies = {key: times / total for key, times in requests.items()}
        self._cpus = sorted({cpu for cpu, _, _ in requests})
        most = max((gpus for _, gpus, _ in requests), default=1)
        self._known: list[list[LossByFree | None]] = [[None] * (most + 1) for _ in range(len(self._cpus) + 1)]
        self._most = most

    def lost(self, cpu: int, whole: int) -> LossByFree:
        """Return the lost part of a GPU by what is left on it.

        It holds for nodes with this much processor and this many whole GPUs free.
        """
        row, column = bisect_right(self._cpus, cpu), min(whole, self._most)
        known = self._known[row][column]
        if known is None:
            known = self._known[row][column] = self._table(cpu, column)
        return known

    def of(self, room: NodeCapacity) -> float:
        """Return the loss on a node."""
        lost = self.lost(room.cpu, room.whole)
        return sum([lost[left] for left in room.left])

    def _table(self, cpu: int, whole: int) -> LossByFree:
        misses = [0.0] * (WHOLE_MILLI + 1)  # change of the fraction that cannot use a GPU with this much left
        for (needs, gpus, share), part in self._frequencies.items():
            misses[0] += part
            if needs <= cpu and (gpus == 1 or gpus <= whole):
                misses[share] -= part
        table, miss = [], 0.0
        for left, change in enumerate(misses):
            miss += change
            table.append(left * miss)
        return table
