"""The GPU models we know: grid, compute slices and legal profiles, read from the geometry file."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import msgspec

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


def load_models(document: str, override: str = "") -> tuple[GpuModelSpec, ...]:
    """Read the geometry file, and what overrides it; raise ValueError for what bit masks cannot carry.

    An override is a file of the same form. It may add models, and give those there are more profiles and places; a grid
    that nobody had read, too. It takes nothing away: leases may lie there, and a card that offers less than its model
    can have says so itself.
    """
    models = {model.name: model for model in _read(document)}
    for model in _read(override) if override else ():
        if model.name in models:
            _widens(models[model.name], model)
        models[model.name] = model
    if override:  # rows of models that are known no longer may be of the same cards
        _check_words(models.values())
    return tuple(models.values())


def model_named(models: Iterable[GpuModelSpec], name: str) -> GpuModelSpec:
    """Find a model by its name, an alias or a PCI id, whatever the case; raise ValueError if unknown."""
    wanted = name.casefold()
    known = list(models)
    for model in known:
        if wanted in (word.casefold() for word in (model.name, *model.aliases, *model.pci)):
            return model
    raise ValueError(f"no GPU model {name!r}; known are: {', '.join(model.name for model in known)}")


class _Slice(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    compute: int
    memory: int
    max: int
    starts: list[int]


class _Model(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    aliases: list[str]
    pci: list[str]
    memory_gb: Annotated[int, msgspec.Meta(gt=0)]
    memory_grid: Annotated[int, msgspec.Meta(gt=0)] | None  # None: nobody has read it
    compute_slices: Annotated[int, msgspec.Meta(gt=0)]
    placements_verified: bool
    profiles: list[_Slice]


class _File(msgspec.Struct):
    models: list[_Model]


def _read(document: str) -> list[GpuModelSpec]:
    try:
        entries = msgspec.json.decode(document, type=_File).models
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no file of GPU models: {error}") from error
    models = [_model(entry) for entry in entries]
    for model in models:
        for profile in model.profiles:
            _check(model, profile)
    return models


def _model(entry: _Model) -> GpuModelSpec:
    return GpuModelSpec(
        name=entry.name,
        aliases=tuple(entry.aliases),
        pci=tuple(entry.pci),
        memory_gb=entry.memory_gb,
        grid=entry.memory_grid or NOTIONAL_GRID,
        compute=entry.compute_slices,
        profiles=tuple(_profile(each) for each in entry.profiles),
        verified=entry.placements_verified,
    )


def _profile(entry: _Slice) -> Profile:
    return Profile(
        name=entry.name,
        compute=entry.compute,
        memory=entry.memory,
        placements=tuple(Placement(start, entry.memory) for start in entry.starts),
        max_instances=entry.max,
        # Which suffixed profiles may stand together only NVML knows; one +me of any sort is always legal.
        media="+me" in entry.name,
        isolation=Isolation.HARDWARE,
    )


def _widens(known: GpuModelSpec, override: GpuModelSpec) -> None:
    """Raise ValueError where an override would take something away, or make it another thing."""
    ours, theirs = (known.compute, known.memory_gb), (override.compute, override.memory_gb)
    if known.cuttable and (known.grid, *ours) != (override.grid, *theirs):
        raise ValueError(
            f"{known.name} has {known.grid} units, {known.compute} compute slices and {known.memory_gb} GB; an override"
            f" cannot make it {override.grid}, {override.compute} and {override.memory_gb}: leases are counted in them"
        )
    lost = [word for word in (*known.aliases, *known.pci) if word not in (*override.aliases, *override.pci)]
    of_name = {profile.name: profile for profile in override.profiles}
    for profile in known.profiles:
        its = of_name.get(profile.name)
        if its is None or (profile.placements and _size(its) != _size(profile)):
            lost.append(profile.name)
        elif gone := {*profile.placements} - {*its.placements}:
            lost += [f"{profile.name} at unit {place.start}" for place in sorted(gone)]
    if lost:
        raise ValueError(
            f"the override takes away from {known.name}, where leases may lie: {', '.join(lost)}; name all that is"
            " known of a model and what is new (a card that offers less says so itself)"
        )


def _size(profile: Profile) -> tuple[int, int, int]:
    return profile.compute, profile.memory, profile.max_instances


def _check_words(models: Iterable[GpuModelSpec]) -> None:
    """Raise ValueError where a card could be taken for two models."""
    named: dict[str, str] = {}
    for model in models:
        for word in {each.casefold() for each in (model.name, *model.aliases, *model.pci)}:
            if other := named.get(word):
                raise ValueError(f"{word!r} names both {other} and {model.name}; a card must be one of them")
            named[word] = model.name


def _check(model: GpuModelSpec, profile: Profile) -> None:
    if min(profile.compute, profile.memory, profile.max_instances) < 1:
        raise ValueError(f"{model.name}: {profile.name} takes nothing of the card")
    if profile.compute > model.compute:
        raise ValueError(
            f"{model.name}: {profile.name} has more compute slices than the card's {model.compute}"
        )
    if not profile.placements:
        return
    if max(placement.end for placement in profile.placements) > model.grid:
        raise ValueError(f"{model.name}: {profile.name} reaches beyond the {model.grid} units of the grid")
    starts = [placement.start for placement in profile.placements]
    if min(starts) < 0 or len(set(starts)) < len(starts):
        raise ValueError(
            f"{model.name}: {profile.name} begins before the first unit or twice at one: {starts}"
        )
    for one, next_one in pairwise(sorted(profile.placements)):
        if one.overlaps(next_one):
            raise ValueError(
                f"{model.name}: {profile.name} of {profile.memory} units overlaps itself at units {one.start} and"
                f" {next_one.start}; no card is known that is cut so"
            )
    # Placement trusts the mask and the media bit alone, so they must imply the vendor's instance limit.
    side_by_side = len(profile.placements)
    if (1 if profile.media else side_by_side) > profile.max_instances:
        raise ValueError(
            f"{model.name}: {side_by_side} of {profile.name} fit side by side but only"
            f" {profile.max_instances} are allowed; the occupied units alone cannot express that"
        )
