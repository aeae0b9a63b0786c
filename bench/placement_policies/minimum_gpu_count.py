"""Lower bound on the GPUs that a changing set of slices needs."""

from broker.domain.placement.costs.minimum_gpus import create_capacity_test
from broker.domain.placement.costs.state_tables import StateTable


class MinimumGpus:
    """The fewest GPUs that could hold all slices, updated with every change.

    A profile with media engines counts as the one without, so this is a lower bound.
    """

    def __init__(self, table: StateTable) -> None:
        """Begin with no slice; raise ValueError for profiles without a closed form."""
        self._table = table
        self._whole = [profile.memory == table.grid for profile in table.profiles]
        # A GPU has one isolation until it is empty: each isolation needs GPUs of its own.
        by_isolation = {
            isolation: [p for p in table.profiles if p.isolation is isolation and p.memory < table.grid]
            for isolation in {p.isolation for p in table.profiles}
        }
        self._capacity = {key: create_capacity_test(each, table.grid) for key, each in by_isolation.items() if each}
        self._gpus_by_isolation = dict.fromkeys(self._capacity, 0)
        self.gpus = 0

    def add(self, profile: int) -> None:
        if self._whole[profile]:
            self.gpus += 1
            return
        isolation = self._table.profiles[profile].isolation
        capacity = self._capacity[isolation]
        capacity.add_slices(self._table.profiles[profile], 1)
        # One more slice takes at most one more GPU, so one check is enough.
        if not capacity.fits(self._gpus_by_isolation[isolation]):
            self._gpus_by_isolation[isolation] += 1
            self.gpus += 1

    def remove(self, profile: int) -> None:
        if self._whole[profile]:
            self.gpus -= 1
            return
        isolation = self._table.profiles[profile].isolation
        capacity = self._capacity[isolation]
        capacity.add_slices(self._table.profiles[profile], -1)
        if self._gpus_by_isolation[isolation] and capacity.fits(self._gpus_by_isolation[isolation] - 1):
            self._gpus_by_isolation[isolation] -= 1
            self.gpus -= 1
