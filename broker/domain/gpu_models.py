"""The GPU models we know: grid, compute slices and legal profiles, read from the geometry file."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from broker.domain.profiles import Placement, Profile, shares, whole_card
from broker.domain.states import Isolation

# A card whose grid nobody has read is counted in quarters: enough for the whole card and for shares.
NOTIONAL_GRID = 4


@dataclass(frozen=True, slots=True)
class GpuModelSpec:
    """One GPU model as the broker sees it; `profiles` are its MIG slices, without the whole card."""

    name: str
    aliases: tuple[str, ...]
    pci: tuple[str, ...]
    memory_gb: int
    grid: int
    compute: int
    profiles: tuple[Profile, ...]
    verified: bool  # the placements were seen on a real card

    @property
    def cuttable(self) -> bool:
        """Tell whether any slice has a known place; if not, only the card as a whole can be sold."""
        return any(profile.placements for profile in self.profiles)

    @property
    def whole(self) -> Profile:
        return whole_card(grid=self.grid, compute=self.compute)

    def sold_as(self, isolation: Isolation) -> tuple[Profile, ...]:
        """Return every profile of this model that has the isolation."""
        if isolation is Isolation.DEVICE:
            return (self.whole,)
        if isolation is Isolation.HARDWARE:
            return tuple(profile for profile in self.profiles if profile.placements)
        return shares(grid=self.grid, isolation=isolation)

    def profile(self, name: str, isolation: Isolation) -> Profile:
        """Return the profile of that name, or raise ValueError that names the ones there are."""
        for profile in self.sold_as(isolation):
            if profile.name == name:
                return profile
        known = ", ".join(profile.name for profile in self.sold_as(isolation)) or "none"
        raise ValueError(f"{self.name} has no {isolation} profile {name!r}; it has: {known}")


def load_models(document: str) -> tuple[GpuModelSpec, ...]:
    """Read the geometry file, or raise ValueError when a model cannot be carried by bit masks."""
    models = tuple(_model(entry) for entry in json.loads(document)["models"])
    for model in models:
        for profile in model.profiles:
            _check(model, profile)
    return models


def model_named(models: Iterable[GpuModelSpec], name: str) -> GpuModelSpec:
    """Find a model by its name, an alias or a PCI id, whatever the case; raise ValueError if unknown."""
    wanted = name.casefold()
    known = list(models)
    for model in known:
        if wanted in (word.casefold() for word in (model.name, *model.aliases, *model.pci)):
            return model
    raise ValueError(f"no GPU model {name!r}; known are: {', '.join(model.name for model in known)}")


def _model(entry: dict[str, Any]) -> GpuModelSpec:
    return GpuModelSpec(
        name=entry["name"],
        aliases=tuple(entry["aliases"]),
        pci=tuple(entry["pci"]),
        memory_gb=entry["memory_gb"],
        grid=entry["memory_grid"] or NOTIONAL_GRID,
        compute=entry["compute_slices"],
        profiles=tuple(_profile(each) for each in entry["profiles"]),
        verified=entry["placements_verified"],
    )


def _profile(entry: dict[str, Any]) -> Profile:
    return Profile(
        name=entry["name"],
        compute=entry["compute"],
        memory=entry["memory"],
        placements=tuple(Placement(start, entry["memory"]) for start in entry["starts"]),
        max_instances=entry["max"],
        # Which suffixed profiles may stand together only NVML knows; one +me of any sort is always legal.
        media="+me" in entry["name"],
        isolation=Isolation.HARDWARE,
    )


def _check(model: GpuModelSpec, profile: Profile) -> None:
    if not profile.placements:
        return
    if max(placement.end for placement in profile.placements) > model.grid:
        raise ValueError(f"{model.name}: {profile.name} reaches beyond the {model.grid} units of the grid")
    starts = [placement.start for placement in profile.placements]
    if min(starts) < 0 or len(set(starts)) < len(starts):
        raise ValueError(
            f"{model.name}: {profile.name} begins before the first unit or twice at one: {starts}"
        )
    # Placement trusts the mask and the media bit alone, so they must imply the vendor's instance limit.
    side_by_side, free_from = 0, 0
    for placement in sorted(profile.placements, key=lambda each: each.end):
        if placement.start >= free_from:
            side_by_side, free_from = side_by_side + 1, placement.end
    if (1 if profile.media else side_by_side) > profile.max_instances:
        raise ValueError(
            f"{model.name}: {side_by_side} of {profile.name} fit side by side but only"
            f" {profile.max_instances} are allowed; the occupied units alone cannot express that"
        )
