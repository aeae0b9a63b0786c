"""Exact fewest GPUs that hold slices which come and go, the benchmark for any placement."""

from broker.domain.placement.costs.minimum_gpus import create_capacity_test
from broker.domain.placement.costs.state_tables import StateTable


class MinimumGpus:
    """The fewest GPUs that could hold all slices, updated with every change.

    Slices with media engines count as their plain twins, although a GPU has only one such.
    """

    def __init__(self, table: StateTable) -> None:
        """Begin with no slice; raise ValueError for profiles without a closed form."""
        self._table = table
        self._whole = [profile.memory == table.grid for profile in table.profiles]
        # A GPU has one isolation until it is empty: each isolation needs GPUs of its own.
        parts = {
            kind: [p for p in table.profiles if p.isolation is kind and p.memory < table.grid]
            for kind in {p.isolation for p in table.profiles}
        }
        self._holding = {kind: create_capacity_test(its, table.grid) for kind, its in parts.items() if its}
        self._least = dict.fromkeys(self._holding, 0)
        self.gpus = 0

    def add(self, profile: int) -> None:
        if self._whole[profile]:
            self.gpus += 1
            return
        kind = self._table.profiles[profile].isolation
        holding = self._holding[kind]
        holding.change(self._table.profiles[profile], 1)
        # One more slice takes at most one more GPU, so one check is enough.
        if not holding.fits(self._least[kind]):
            self._least[kind] += 1
            self.gpus += 1

    def remove(self, profile: int) -> None:
        if self._whole[profile]:
            self.gpus -= 1
            return
        kind = self._table.profiles[profile].isolation
        holding = self._holding[kind]
        holding.change(self._table.profiles[profile], -1)
        if self._least[kind] and holding.fits(self._least[kind] - 1):
            self._least[kind] -= 1
            self.gpus -= 1
