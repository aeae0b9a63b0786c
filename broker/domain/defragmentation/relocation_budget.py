"""Limits on relocations: in total, and per tenant."""

from collections import Counter
from collections.abc import Iterable, Mapping

from broker.domain.defragmentation.fleet import LiveSlice


class RelocationBudget:
    """Relocations that may still be made under one limit."""

    def __init__(self, limit: int, *, per_tenant: int | None = None, spent: Mapping[str, int] | None = None) -> None:
        """Allow `limit` relocations in total and some per tenant, less what was `spent`."""
        self.remaining = limit
        self._per_tenant = limit if per_tenant is None else per_tenant
        self._spent: Counter[str] = Counter(spent)

    def affords(self, slices: Iterable[LiveSlice]) -> bool:
        """Tell whether all of these slices may be relocated once."""
        affected = Counter(each.tenant for each in slices)
        return affected.total() <= self.remaining and all(
            self._spent[tenant] + count <= self._per_tenant for tenant, count in affected.items()
        )

    def spend(self, slices: Iterable[LiveSlice]) -> None:
        for each in slices:
            self.remaining -= 1
            self._spent[each.tenant] += 1
