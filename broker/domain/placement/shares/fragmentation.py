"""Fragmentation (FGD, USENIX ATC 2023): free shares that the next request cannot use."""

from bisect import bisect_right
from collections.abc import Mapping

from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, NodeCapacity, ShareRequest

# Index: free thousandths of a GPU; value: expected thousandths of them that a random request cannot use.
LossByFree = list[float]


class FragmentationMeasure:
    """Expected thousandths of GPUs on a node that a random request cannot use.

    Requests are drawn as often as they occur. A GPU is lost to a request if too little of it is free; all GPUs
    of the node are lost if the node lacks processors or unused GPUs.
    """

    def __init__(self, frequencies: Mapping[ShareRequest, float]) -> None:
        """Take the frequency of each request; requests without a GPU are ignored."""
        requests: dict[tuple[int, int, int], float] = {}
        for request, times in frequencies.items():
            if request.gpus:
                key = request.cpu, request.gpus, request.share
                requests[key] = requests.get(key, 0.0) + times
        total = sum(requests.values())
        self._frequencies = {key: times / total for key, times in requests.items()}
        self._cpus = sorted({cpu for cpu, _, _ in requests})
        max_gpus = max((gpus for _, gpus, _ in requests), default=1)
        self._tables: list[list[LossByFree | None]] = [[None] * (max_gpus + 1) for _ in range(len(self._cpus) + 1)]
        self._max_gpus = max_gpus

    def loss_table(self, cpu: int, unused_gpus: int) -> LossByFree:
        """Return the expected loss for each number of free thousandths of a GPU.

        It holds for nodes with this much processor and this many unused GPUs.
        """
        row, column = bisect_right(self._cpus, cpu), min(unused_gpus, self._max_gpus)
        known = self._tables[row][column]
        if known is None:
            known = self._tables[row][column] = self._table(cpu, column)
        return known

    def fragmentation_of(self, node: NodeCapacity) -> float:
        """Return the loss on a node."""
        loss_table = self.loss_table(node.cpu, node.unused_gpus)
        return sum([loss_table[left] for left in node.free_by_gpu])

    def _table(self, cpu: int, unused_gpus: int) -> LossByFree:
        unserved_change = [0.0] * (WHOLE_MILLI + 1)  # change of the fraction that cannot use a GPU with this much left
        for (needs, gpus, share), frequency in self._frequencies.items():
            unserved_change[0] += frequency
            if needs <= cpu and (gpus == 1 or gpus <= unused_gpus):
                unserved_change[share] -= frequency
        table, unserved = [], 0.0
        for left, change in enumerate(unserved_change):
            unserved += change
            table.append(left * unserved)
        return table
