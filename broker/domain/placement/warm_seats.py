"""The places for slices on cards of one table, numbered: what is left cut on a card is a number there."""

from broker.domain.geometry import Held
from broker.domain.placement.ranks import Ranks
from broker.domain.placement.warmth import COLD, Cutting, Warm, bars, is_cut


class Seats:
    """Which slices may be left cut, one bit each, and what becomes of them when something is placed."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, profiles = ranks, ranks.table.profiles
        held = (
            Held(place, profile) for profile in profiles if is_cut(profile) for place in profile.placements
        )
        self._bit = {each: 1 << n for n, each in enumerate(held)}
        # By profile, by the unit a slice begins at: its own bit, and the bits of all that is still there with it.
        self.bit = tuple(
            {place.start: self._bit.get(Held(place, profile), 0) for place in profile.placements}
            for profile in profiles
        )
        self.keeps = tuple(
            {
                place.start: sum(bit for left, bit in self._bit.items() if not bars(left, profile, place))
                for place in profile.placements
            }
            for profile in profiles
        )
        self._known: dict[Warm, int] = {COLD: 0}

    def of(self, warm: Warm) -> int:
        """Return what is left cut as bits; raises KeyError for what cards of this table cannot have."""
        known = self._known.get(warm)
        if known is None:
            known = self._known[warm] = sum(self._bit[each] for each in warm)
        return known

    def way(self, profile: int, state: int, left: int) -> tuple[Cutting, int]:
        """Return how a profile is had on a card in a state in which it fits, and from which unit on.

        Of the starts that cost least it is the one that is had most quickly, and of such the first.
        """
        bit, keeps = self.bit[profile], self.keeps[profile]
        return min(
            (
                Cutting.WARM if left & bit[start] else Cutting.ANEW if left & ~keeps[start] else Cutting.FREE,
                start,
            )
            for start, _ in self._ranks.alike[profile][state]
        )
