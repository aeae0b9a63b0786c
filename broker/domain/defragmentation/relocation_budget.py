"""Limits on relocations: in total, and per tenant."""

from collections import Counter
from collections.abc import Iterable, Mapping

from broker.domain.defragmentation.fleet import LiveSlice


class RelocationBudget:
    """Relocations that may still be made under one limit."""

    def __init__(self, moves: int, *, per_tenant: int | None = None, spent: Mapping[str, int] | None = None) -> None:
        """Allow this many in total and per tenant, less what was `spent`."""
        self.left = moves
        self._per_tenant = moves if per_tenant is None else per_tenant
        self._spent: Counter[str] = Counter(spent)

    def affords(self, pieces: Iterable[LiveSlice]) -> bool:
        """Tell whether all of these slices may be relocated once."""
        affected = Counter(piece.tenant for piece in pieces)
        return affected.total() <= self.left and all(
            self._spent[tenant] + count <= self._per_tenant for tenant, count in affected.items()
        )

    def spend(self, pieces: Iterable[LiveSlice]) -> None:
        for piece in pieces:
            self.left -= 1
            self._spent[piece.tenant] += 1
