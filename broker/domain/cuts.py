"""Every way a card of one model may be cut, as counts of profiles: what a node can be told and what it offers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from broker.domain.geometry import EMPTY, CardState, Geometry, Held
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation

CARD = "card"  # an uncut card, sold whole


@dataclass(frozen=True, slots=True, order=True)
class Cut:
    """How many of which profiles one card is cut into; the driver decides where each of them lies."""

    counts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> "Cut":
        return cls(tuple(sorted(Counter(names).items())))

    @classmethod
    def counted(cls, counts: Mapping[str, int]) -> "Cut":
        return cls(tuple(sorted((name, count) for name, count in counts.items() if count)))

    @property
    def whole(self) -> bool:
        return self.counts == ((CARD, 1),)

    def __str__(self) -> str:
        return " + ".join(f"{count} × {name}" for name, count in self.counts) or "nothing"


WHOLE = Cut(((CARD, 1),))


def cut_of(geometry: Geometry) -> Cut:
    return Cut.of(held.profile.name for held in geometry.held)


class Catalogue:
    """The cuts that leave no room for another slice, and the card left whole.

    `most` says which profiles the node itself knows and how many of each one card can have; without it the
    model's own are taken.
    """

    def __init__(
        self, model: GpuModelSpec, profiles: Iterable[Profile], most: Mapping[str, int] | None = None
    ):
        self.model = model
        known = (profile for profile in profiles if profile.isolation is Isolation.HARDWARE)
        self.profiles = tuple(
            sorted((p for p in known if most is None or most.get(p.name)), key=lambda p: (-p.memory, p.name))
        )
        self._most = {
            p.name: min(p.max_instances, (most or {}).get(p.name, p.max_instances)) for p in self.profiles
        }

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        return tuple(sorted(self._maximal))

    def geometry(self, cut: Cut) -> Geometry:
        """Return where the slices lie; raises ValueError for a cut that the card cannot have."""
        if cut.whole:
            return Geometry(frozenset({Held(self.model.whole.placements[0], self.model.whole)}))
        wanted = dict(cut.counts)
        unknown = sorted(set(wanted) - set(self._most))
        if unknown:
            raise ValueError(f"a {self.model.name} here has no {', '.join(unknown)}; it has: {self.names}")
        by_name = {profile.name: profile for profile in self.profiles}
        lies = next(
            self._lay([by_name[p.name] for p in self.profiles for _ in range(wanted.get(p.name, 0))]), None
        )
        if lies is None or any(count > self._most[name] for name, count in cut.counts):
            raise ValueError(f"a {self.model.name} cannot be cut into {cut}")
        return Geometry(frozenset(lies))

    @property
    def names(self) -> str:
        return ", ".join(profile.name for profile in self.profiles) or "no profile at all"

    @property
    def _maximal(self) -> frozenset[Cut]:
        return _maximal(self.model.grid, self.profiles, tuple(self._most[p.name] for p in self.profiles))

    def _lay(self, profiles: list[Profile], state: CardState = EMPTY) -> Iterator[list[Held]]:
        """Place the profiles, large ones first, wherever all of them find room."""
        for placement in profiles[0].placements if profiles else ():
            if state.fits(profiles[0], placement):
                for others in self._lay(profiles[1:], state.with_held(profiles[0], placement)):
                    yield [Held(placement, profiles[0]), *others]
        if not profiles:
            yield []


def _within(cut: Cut, other: Cut) -> bool:
    """Tell whether another cut offers all that this one does, and more."""
    has = dict(other.counts)
    return cut != other and all(has.get(name, 0) >= count for name, count in cut.counts)


@lru_cache(maxsize=64)
def _maximal(grid: int, profiles: tuple[Profile, ...], most: tuple[int, ...]) -> frozenset[Cut]:
    """Fill the card unit by unit in every way, and keep what no other way contains."""
    cuts: set[Cut] = set()
    seen: set[tuple[CardState, int, Cut]] = set()
    ways: list[tuple[CardState, int, tuple[str, ...]]] = [(EMPTY, 0, ())]
    while ways:
        state, unit, names = ways.pop()
        key = (state, unit, Cut.of(names))
        if key in seen:
            continue
        seen.add(key)
        if unit == grid:
            cuts.add(key[2])
            continue
        ways.append((state, unit + 1, names))
        for profile, limit in zip(profiles, most, strict=True):
            here = Placement(unit, profile.memory)
            full = names.count(profile.name) >= limit
            if here in profile.placements and state.fits(profile, here) and not full:
                ways.append((state.with_held(profile, here), here.end, (*names, profile.name)))
    slices = {cut for cut in cuts if cut.counts}
    return frozenset({WHOLE, *(cut for cut in slices if not any(_within(cut, other) for other in slices))})
