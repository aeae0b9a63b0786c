"""How much of what is free on a node is of no use to whoever asks next: the measure of fragmentation of FGD."""

from bisect import bisect_right
from collections.abc import Mapping

from broker.domain.placement.rooms import WHOLE, Request, Room

# By what is left on a card: the part of it, in thousandths of a card, that is of no use to an average request.
Lost = list[float]


class Fragments:
    """Expected thousandths of cards that a request, drawn as often as it is asked for, could not use on a node.

    A card is of no use to a request when too little is left on it, and all cards of a node are when it does not
    fit there at all: the processors are too few, or the cards that nobody uses.
    """

    def __init__(self, popular: Mapping[Request, float]) -> None:
        """Take how often what is asked for; who asks for no card cannot lose any."""
        asked: dict[tuple[int, int, int], float] = {}
        for request, times in popular.items():
            if request.cards:
                key = request.cpu, request.cards, request.share
                asked[key] = asked.get(key, 0.0) + times
        total = sum(asked.values())
        self._asked = {key: times / total for key, times in asked.items()}
        self._cpus = sorted({cpu for cpu, _, _ in asked})
        most = max((cards for _, cards, _ in asked), default=1)
        self._known: list[list[Lost | None]] = [[None] * (most + 1) for _ in range(len(self._cpus) + 1)]
        self._most = most

    def lost(self, cpu: int, whole: int) -> Lost:
        """Return what is lost of a card by what is left on it, on nodes with so much else free."""
        row, column = bisect_right(self._cpus, cpu), min(whole, self._most)
        known = self._known[row][column]
        if known is None:
            known = self._known[row][column] = self._table(cpu, column)
        return known

    def of(self, room: Room) -> float:
        """Return what is lost on a node."""
        lost = self.lost(room.cpu, room.whole)
        return sum([lost[left] for left in room.left])

    def _table(self, cpu: int, whole: int) -> Lost:
        misses = [0.0] * (WHOLE + 1)  # how many more cannot use a card with this much left than with one less
        for (needs, cards, share), part in self._asked.items():
            misses[0] += part
            if needs <= cpu and (cards == 1 or cards <= whole):
                misses[share] -= part
        table, miss = [], 0.0
        for left, change in enumerate(misses):
            miss += change
            table.append(left * miss)
        return table
