"""What one card itself says can be cut from it: its own answer overrides what the file says of its model."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from broker.domain.geometry import Geometry
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation

WALLED = (Isolation.HARDWARE, Isolation.DEVICE)
Starts = Mapping[str, Iterable[int]]  # profiles by name, and at which units each may begin


@dataclass(frozen=True, slots=True)
class Published:
    """The profiles of a card, the card as a whole among them, each with the units at which it can be had."""

    places: tuple[tuple[str, int], ...]  # in order

    def starts(self) -> dict[str, list[int]]:
        """Return it as a row keeps it."""
        found: dict[str, list[int]] = {}
        for name, start in self.places:
            found.setdefault(name, []).append(start)
        return found

    def placements_of(self, profile: Profile) -> tuple[Placement, ...]:
        """Return those of a profile's placements that can be had."""
        return tuple(place for place in profile.placements if (profile.name, place.start) in self.places)

    def only(self, profiles: Iterable[Profile]) -> tuple[Profile, ...]:
        """Return those of some profiles that can be had, each at the places that it has there and nowhere else."""
        with_places = ((profile, self.placements_of(profile)) for profile in profiles)
        return tuple(replace(profile, placements=places) for profile, places in with_places if places)


# How a card is cut already, or into what it can be; None: into anything that its model can.
Cut = Geometry | Published | None


def published(starts: Starts) -> Published:
    return Published(tuple(sorted({(name, start) for name, its in starts.items() for start in its})))


def read_published(text: str) -> Published:
    """Read what a row keeps: `{"1g.10gb": [0, 1]}`."""
    return published(json.loads(text))


def narrowed(model: GpuModelSpec, starts: Starts) -> Published | None:
    """Return what a card publishes of all that its model can have, or None where nothing of it is missing."""
    told = published(starts)
    sold = walled(model)
    known = {profile.name: [place.start for place in told.placements_of(profile)] for profile in sold}
    every = {profile.name: [place.start for place in profile.placements] for profile in sold}
    return None if known == every else published(known)


def walled(model: GpuModelSpec) -> tuple[Profile, ...]:
    """Return what a card of a model can be cut into: what others share no part of."""
    return tuple(profile for isolation in WALLED for profile in model.sold_as(isolation))


def placements_of(profile: Profile, cut: Cut) -> tuple[Placement, ...]:
    """Return where on a card a profile can be had, were the card empty."""
    if cut is None:
        return profile.placements
    if isinstance(cut, Published):
        return cut.placements_of(profile)
    return tuple(held.placement for held in cut.held if held.profile == profile)
