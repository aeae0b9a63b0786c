"""How much may be moved: in all, and of what belongs to one tenant."""

from collections import Counter
from collections.abc import Iterable, Mapping

from broker.domain.placement.fleet import Slice


class Budget:
    """Moves that may still be made until whoever handed it out makes a new one."""

    def __init__(
        self, moves: int, *, per_tenant: int | None = None, spent: Mapping[str, int] | None = None
    ) -> None:
        """Allow so many in all, and of each tenant so many less what was spent of it already."""
        self.left = moves
        self._per_tenant = moves if per_tenant is None else per_tenant
        self._spent: Counter[str] = Counter(spent)

    def affords(self, pieces: Iterable[Slice]) -> bool:
        """Tell whether all of these slices may be moved once."""
        asked = Counter(piece.tenant for piece in pieces)
        return asked.total() <= self.left and all(
            self._spent[tenant] + count <= self._per_tenant for tenant, count in asked.items()
        )

    def spend(self, pieces: Iterable[Slice]) -> None:
        for piece in pieces:
            self.left -= 1
            self._spent[piece.tenant] += 1
