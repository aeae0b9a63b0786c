"""What one card is cut into, as a set of slices and as the small state that decides what still fits."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation


@dataclass(frozen=True, slots=True)
class CardState:
    """All that placement needs to know of a card; equal states are interchangeable.

    Slices conflict if and only if their runs of memory units overlap, so a bit mask decides, with one more
    bit for the media engines and the isolation the card is cut for (None: empty, it may become anything).
    How many slices there are decides nothing but which of two equals is taken.
    """

    mask: int = 0
    media: bool = False
    compute: int = 0
    isolation: Isolation | None = None
    count: int = field(default=0, compare=False, repr=False)

    @property
    def empty(self) -> bool:
        return self.mask == 0

    def fits(self, profile: Profile, placement: Placement) -> bool:
        """Tell whether the profile may be put at this placement beside all that is held."""
        return (
            self.mask & placement.mask == 0
            and self.isolation in (None, profile.isolation)
            and not (self.media and profile.media)
        )

    def with_held(self, profile: Profile, placement: Placement) -> "CardState":
        """Return the state after taking a placement, or raise ValueError when it is not free."""
        if not self.fits(profile, placement):
            raise ValueError(
                f"{profile.name} does not fit at unit {placement.start} of a card in state {self}"
            )
        return CardState(
            mask=self.mask | placement.mask,
            media=self.media or profile.media,
            compute=self.compute + profile.compute,
            isolation=profile.isolation,
            count=self.count + 1,
        )

    def without(self, profile: Profile, placement: Placement) -> "CardState":
        """Return the state after giving a placement back, or raise ValueError when it was not held."""
        held = self.mask & placement.mask == placement.mask and self.isolation is profile.isolation
        if not held or self.compute < profile.compute or (profile.media and not self.media):
            raise ValueError(
                f"{profile.name} at unit {placement.start} is not held by a card in state {self}"
            )
        mask = self.mask & ~placement.mask
        return CardState(
            mask=mask,
            media=self.media and not profile.media,
            compute=self.compute - profile.compute,
            isolation=self.isolation if mask else None,
            count=self.count - 1 if mask else 0,
        )


EMPTY = CardState()


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """One profile at one placement."""

    placement: Placement
    profile: Profile


@dataclass(frozen=True, slots=True)
class Geometry:
    """What one card is cut into: a set of profiles at placements."""

    held: frozenset[Held] = frozenset()

    @property
    def state(self) -> CardState:
        return state_of(self.held)

    def fits(self, profile: Profile, placement: Placement) -> bool:
        """Tell whether the profile may be added, counting instances as well as units."""
        count = sum(1 for held in self.held if held.profile == profile)
        return count < profile.max_instances and self.state.fits(profile, placement)

    def with_held(self, profile: Profile, placement: Placement) -> "Geometry":
        if not self.fits(profile, placement):
            raise ValueError(f"{profile.name} does not fit at unit {placement.start} of {self}")
        return Geometry(self.held | {Held(placement, profile)})

    def without(self, profile: Profile, placement: Placement) -> "Geometry":
        gone = Held(placement, profile)
        if gone not in self.held:
            raise ValueError(f"{profile.name} at unit {placement.start} is not part of {self}")
        return Geometry(self.held - {gone})

    def __str__(self) -> str:
        return " ".join(f"{h.profile.name}@{h.placement.start}" for h in self._in_order()) or "an uncut card"

    def _in_order(self) -> list[Held]:
        return sorted(self.held, key=lambda held: held.placement)


def state_of(held: Iterable[Held]) -> CardState:
    """Fold what a card holds into its state, or raise ValueError when two of them conflict."""
    state = EMPTY
    for each in held:
        state = state.with_held(each.profile, each.placement)
    return state


def faults(geometry: Geometry, *, grid: int) -> tuple[str, ...]:
    """Say everything that is illegal about a geometry from outside; none means a card can be cut so."""
    found = []
    units: Counter[int] = Counter()
    for held in sorted(geometry.held, key=lambda held: held.placement):
        if held.placement not in held.profile.placements:
            found.append(f"{held.profile.name} cannot start at unit {held.placement.start}")
        if held.placement.end > grid:
            found.append(
                f"{held.profile.name}@{held.placement.start} ends beyond the {grid} units of the card"
            )
        units.update(range(held.placement.start, held.placement.end))
    found += [f"unit {unit} is taken {times} times" for unit, times in sorted(units.items()) if times > 1]
    counts = Counter(held.profile for held in geometry.held)
    found += [
        f"{times} of {profile.name}, at most {profile.max_instances} may stand on one card"
        for profile, times in counts.items()
        if times > profile.max_instances
    ]
    if sum(times for profile, times in counts.items() if profile.media) > 1:
        found.append("the media engines are given out twice")
    if len({profile.isolation for profile in counts}) > 1:
        found.append("one card serves two kinds of isolation")
    return tuple(found)
