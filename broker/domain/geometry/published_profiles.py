"""Profiles a single GPU publishes, which override those of its model."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import Geometry
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.lifecycle.states import Isolation

DEDICATED_ISOLATIONS = (Isolation.HARDWARE, Isolation.DEVICE)
StartsByProfile = Mapping[str, Iterable[int]]  # by profile name, the units at which it may begin


@dataclass(frozen=True, slots=True)
class PublishedProfiles:
    """The profiles of a GPU, the whole GPU included, with their start units."""

    places: tuple[tuple[str, int], ...]  # in order

    def starts(self) -> dict[str, list[int]]:
        """Return it in the form stored in the database."""
        found: dict[str, list[int]] = {}
        for name, start in self.places:
            found.setdefault(name, []).append(start)
        return found

    def placements_of(self, profile: Profile) -> tuple[Placement, ...]:
        """Return the published placements of a profile."""
        return tuple(place for place in profile.placements if (profile.name, place.start) in self.places)

    def only(self, profiles: Iterable[Profile]) -> tuple[Profile, ...]:
        """Return the published profiles, each with its published placements only."""
        with_places = ((profile, self.placements_of(profile)) for profile in profiles)
        return tuple(replace(profile, placements=places) for profile, places in with_places if places)


# A GPU's fixed partitioning, or the profiles it can have; None: all of its model.
Partitioning = Geometry | PublishedProfiles | None


def published_profiles(starts: StartsByProfile) -> PublishedProfiles:
    return PublishedProfiles(tuple(sorted({(name, start) for name, its in starts.items() for start in its})))


def parse_published_profiles(text: str) -> PublishedProfiles:
    """Parse the stored form: `{"1g.10gb": [0, 1]}`."""
    return published_profiles(json.loads(text))


def missing_from_model(model: GpuModelSpec, starts: StartsByProfile) -> PublishedProfiles | None:
    """Return what a GPU publishes; None if nothing of its model is missing."""
    published = published_profiles(starts)
    sold = dedicated_profiles(model)
    known = {profile.name: [place.start for place in published.placements_of(profile)] for profile in sold}
    every = {profile.name: [place.start for place in profile.placements] for profile in sold}
    return None if known == every else published_profiles(known)


def dedicated_profiles(model: GpuModelSpec) -> tuple[Profile, ...]:
    """Return a model's profiles with device or hardware isolation."""
    return tuple(profile for isolation in DEDICATED_ISOLATIONS for profile in model.profiles_with(isolation))


def available_placements(profile: Profile, cut: Partitioning) -> tuple[Placement, ...]:
    """Return the placements of a profile on an empty GPU of this partitioning."""
    if cut is None:
        return profile.placements
    if isinstance(cut, PublishedProfiles):
        return cut.placements_of(profile)
    return tuple(held.placement for held in cut.held if held.profile == profile)
