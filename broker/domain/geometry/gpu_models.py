"""Known GPU models: memory grid, compute slices and profiles, from the geometry file."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import msgspec

from broker.domain.geometry.product_names import comparison_key
from broker.domain.geometry.profiles import Placement, Profile, share_profiles, whole_gpu
from broker.domain.lifecycle.states import Isolation

# A GPU of unknown grid is counted in quarters: enough for the whole GPU and for shares.
NOTIONAL_GRID = 4
MIG_PROFILE_NAME = re.compile(r"(?P<compute>\d+)g\.(?P<memory>\d+)gb(?P<suffix>.*)", re.ASCII)
ROUNDING_PARTS = 64  # names of one profile differ by at most this part of its memory, or by 1 GB


@dataclass(frozen=True, slots=True)
class GpuModelSpec:
    """One GPU model; `profiles` are its MIG slices, without the whole GPU."""

    name: str
    aliases: tuple[str, ...]
    pci_ids: tuple[str, ...]
    memory_gb: int
    grid: int
    compute: int
    profiles: tuple[Profile, ...]
    verified: bool  # the placements were read from a real GPU
    label: str = ""  # full name as people write it: H100 PCIe 80GB
    compute_capability: str = ""  # 9.0; empty: unknown
    has_gpu: bool = True  # False: a block of CPUs, which is only sold in its profiles

    @property
    def has_mig_placements(self) -> bool:
        """Whether any MIG profile has a known placement.

        If not, the GPU is sold whole or in shares, never as MIG slices.
        """
        return any(profile.placements for profile in self.profiles)

    @property
    def whole(self) -> Profile:
        return whole_gpu(grid=self.grid, compute=self.compute)

    def profiles_with(self, isolation: Isolation) -> tuple[Profile, ...]:
        """Return every profile of this model that has the isolation."""
        if isolation is Isolation.HARDWARE:
            return tuple(profile for profile in self.profiles if profile.placements)
        if not self.has_gpu:
            return ()
        if isolation is Isolation.DEVICE:
            return (self.whole,)
        return share_profiles(grid=self.grid, isolation=isolation)

    def mig_profile(self, name: str) -> Profile | None:
        """Return the MIG profile of that name; drivers of other versions round its memory differently."""
        wanted = MIG_PROFILE_NAME.fullmatch(name)
        if wanted is None:
            return None
        for profile in self.profiles:
            found = MIG_PROFILE_NAME.fullmatch(profile.name)
            if found is None or (found["compute"], found["suffix"]) != (wanted["compute"], wanted["suffix"]):
                continue
            difference = abs(int(found["memory"]) - int(wanted["memory"]))
            if difference <= max(1, int(found["memory"]) // ROUNDING_PARTS):
                return profile
        return None

    def profile(self, name: str, isolation: Isolation) -> Profile:
        """Return the profile of that name; ValueError listing the known ones otherwise."""
        for profile in self.profiles_with(isolation):
            if profile.name == name:
                return profile
        known = ", ".join(profile.name for profile in self.profiles_with(isolation)) or "none"
        raise ValueError(f"{self.name} has no {isolation} profile {name!r}; it has: {known}")


def load_models(document: str, override: str = "") -> tuple[GpuModelSpec, ...]:
    """Read the geometry file and its override.

    Raises ValueError for profiles that bit masks cannot represent. An override is a file of the same
    form. It may add models, and add profiles, placements and an unknown grid to existing ones. It
    removes nothing: leases may use it, and a GPU that offers less than its model reports so itself.
    """
    models = {model.name: model for model in _read(document)}
    for model in _read(override) if override else ():
        if model.name in models:
            _check_override_only_adds(models[model.name], model)
        models[model.name] = model
    if override:  # without an override, rows of removed models may name the same GPUs
        _check_names_unique(models.values())
    return tuple(models.values())


def model_named(models: Iterable[GpuModelSpec], name: str) -> GpuModelSpec:
    """Find a model by name, alias or PCI id; ValueError if unknown or ambiguous."""
    wanted = name.casefold()
    known = list(models)
    for model in known:
        if wanted in (word.casefold() for word in (model.name, *model.pci_ids)):
            return model
    key = comparison_key(name)
    named = [model for model in known if key in map(comparison_key, model.aliases)]
    if len(named) == 1:
        return named[0]
    if named:
        raise ValueError(f"{name!r} names several GPU models: {', '.join(model.name for model in named)}")
    raise ValueError(f"unknown GPU model {name!r}; known models: {', '.join(model.name for model in known)}")


def model_entry(model: GpuModelSpec) -> dict[str, Any]:
    """Return a model as an entry of the geometry file, with all its profiles."""
    return {
        "name": model.name,
        "label": model.label,
        "aliases": list(model.aliases),
        "pci": list(model.pci_ids),
        "memory_gb": model.memory_gb,
        "memory_grid": model.grid,
        "compute_slices": model.compute,
        "placements_verified": model.verified,
        "compute_capability": model.compute_capability,
        "profiles": [
            {
                "name": profile.name,
                "compute": profile.compute,
                "memory": profile.memory,
                "max": profile.max_instances,
                "starts": [place.start for place in profile.placements],
            }
            for profile in model.profiles
        ],
    }


class _SliceEntry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    compute: int
    memory: int
    max: int
    starts: list[int]


class _ModelEntry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    aliases: list[str]
    pci: list[str]
    memory_gb: Annotated[int, msgspec.Meta(gt=0)]
    memory_grid: Annotated[int, msgspec.Meta(gt=0)] | None  # None: unknown
    compute_slices: Annotated[int, msgspec.Meta(gt=0)]
    placements_verified: bool
    profiles: list[_SliceEntry] = []
    profiles_of: str = ""  # name of an earlier model with the same profiles
    label: str = ""
    compute_capability: str = ""


class _GeometryFile(msgspec.Struct):
    models: list[_ModelEntry]


def _read(document: str) -> list[GpuModelSpec]:
    try:
        entries = msgspec.json.decode(document, type=_GeometryFile).models
    except msgspec.DecodeError as error:
        raise ValueError(f"this is not a valid list of GPU models: {error}") from error
    entry_by_name = {entry.name: entry for entry in entries}
    for entry in entries:
        if entry.profiles_of:
            if entry.profiles_of not in entry_by_name:
                raise ValueError(f"{entry.name} has the profiles of {entry.profiles_of}, which the file does not list")
            entry.profiles = entry_by_name[entry.profiles_of].profiles
    models = [_model(entry) for entry in entries]
    for model in models:
        for profile in model.profiles:
            _check_profile(model, profile)
    return models


def _model(entry: _ModelEntry) -> GpuModelSpec:
    return GpuModelSpec(
        name=entry.name,
        aliases=tuple(entry.aliases),
        pci_ids=tuple(entry.pci),
        memory_gb=entry.memory_gb,
        grid=entry.memory_grid or NOTIONAL_GRID,
        compute=entry.compute_slices,
        profiles=tuple(_profile(each) for each in entry.profiles),
        verified=entry.placements_verified,
        label=entry.label or entry.name,
        compute_capability=entry.compute_capability,
    )


def _profile(entry: _SliceEntry) -> Profile:
    return Profile(
        name=entry.name,
        compute=entry.compute,
        memory=entry.memory,
        placements=tuple(Placement(start, entry.memory) for start in entry.starts),
        max_instances=entry.max,
        # Only NVML knows which suffixed profiles may be combined; a single +me profile is always legal.
        media="+me" in entry.name,
        isolation=Isolation.HARDWARE,
    )


def _check_override_only_adds(known: GpuModelSpec, override: GpuModelSpec) -> None:
    """Raise ValueError where an override removes or changes something."""
    ours, theirs = (known.compute, known.memory_gb), (override.compute, override.memory_gb)
    if known.has_mig_placements and (known.grid, *ours) != (override.grid, *theirs):
        raise ValueError(
            f"{known.name} has {known.grid} units, {known.compute} compute slices and {known.memory_gb} GB; an override"
            f" cannot make it {override.grid}, {override.compute} and {override.memory_gb}: leases are counted in them"
        )
    lost = [word for word in (*known.aliases, *known.pci_ids) if word not in (*override.aliases, *override.pci_ids)]
    of_name = {profile.name: profile for profile in override.profiles}
    for profile in known.profiles:
        its = of_name.get(profile.name)
        if its is None or (profile.placements and _profile_size(its) != _profile_size(profile)):
            lost.append(profile.name)
        elif gone := {*profile.placements} - {*its.placements}:
            lost += [f"{profile.name} at unit {place.start}" for place in sorted(gone)]
    if lost:
        raise ValueError(
            f"the override takes away from {known.name}, where leases may lie: {', '.join(lost)}; list all known"
            " profiles of a model and the new ones (a GPU that offers less reports so itself)"
        )


def _profile_size(profile: Profile) -> tuple[int, int, int]:
    return profile.compute, profile.memory, profile.max_instances


def _check_names_unique(models: Iterable[GpuModelSpec]) -> None:
    """Raise ValueError where two models share a name, PCI id, or alias and memory."""
    named: dict[tuple[str, int], str] = {}
    for model in models:
        unique = [(word, 0) for word in (model.name, *model.pci_ids)]
        for word, memory_gb in {
            (w.casefold(), gb) for w, gb in [*unique, *((w, model.memory_gb) for w in model.aliases)]
        }:
            if other := named.get((word, memory_gb)):
                raise ValueError(f"{word!r} names both {other} and {model.name}; a GPU can match only one model")
            named[word, memory_gb] = model.name


def _check_profile(model: GpuModelSpec, profile: Profile) -> None:
    if min(profile.compute, profile.memory, profile.max_instances) < 1:
        raise ValueError(f"{model.name}: {profile.name} needs at least one compute slice, memory unit and instance")
    if profile.compute > model.compute:
        raise ValueError(f"{model.name}: {profile.name} has more compute slices than the {model.compute} of the GPU")
    if not profile.placements:
        return
    if max(placement.end for placement in profile.placements) > model.grid:
        raise ValueError(f"{model.name}: {profile.name} exceeds the {model.grid} units of the grid")
    starts = [placement.start for placement in profile.placements]
    if min(starts) < 0 or len(set(starts)) < len(starts):
        raise ValueError(
            f"{model.name}: {profile.name} starts before the first unit or twice at the same unit: {starts}"
        )
    for one, next_one in pairwise(sorted(profile.placements)):
        if one.overlaps(next_one):
            raise ValueError(
                f"{model.name}: {profile.name} of {profile.memory} units overlaps itself at units {one.start} and"
                f" {next_one.start}; no known GPU supports this"
            )
    # Placement checks the mask and the media bit only, so they must imply the vendor's instance limit.
    side_by_side = len(profile.placements)
    if (1 if profile.media else side_by_side) > profile.max_instances:
        raise ValueError(
            f"{model.name}: {side_by_side} of {profile.name} fit side by side but only"
            f" {profile.max_instances} are allowed; the occupied units alone cannot express that"
        )
