"""Compare what a node's driver reports of its GPUs with the known models."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from broker.domain.geometry.gpu_identification import GpuDescription, find_listed_model
from broker.domain.geometry.gpu_models import GpuModelSpec, model_named
from broker.domain.geometry.profiles import Profile


@dataclass(frozen=True, slots=True)
class MigProfileReport:
    """One MIG profile a GPU supports, in NVML's terms."""

    name: str  # 1g.10gb
    compute: int
    max_instances: int
    placements: tuple[tuple[int, int], ...]  # first unit and size

    @property
    def starts(self) -> list[int]:
        return sorted(start for start, _ in self.placements)


@dataclass(frozen=True, slots=True)
class GpuReport:
    """One GPU's report; without MIG profiles it does not support MIG."""

    product: str
    pci_device_id: str
    memory_gb: int
    mig_profiles: tuple[MigProfileReport, ...] = ()


def known_model(report: GpuReport, models: Iterable[GpuModelSpec]) -> GpuModelSpec | None:
    """Return the model of a reported GPU, by PCI id or name and memory."""
    known = tuple(models)
    with suppress(ValueError):
        return model_named(known, report.pci_device_id)
    return find_listed_model(GpuDescription(report.product, report.memory_gb * 1024), known)


def geometry_entry(report: GpuReport, known: GpuModelSpec | None) -> dict[str, Any]:
    """Return a GPU's model as an entry of the geometry file.

    It holds what is known of the model and what the GPU has beside. Raises ValueError where one profile
    has placements of several sizes, or of another size than is known.
    """
    entries = {each.name: _profile_entry(each) for each in report.mig_profiles}
    for profile in known.profiles if known else ():
        entry = entries.setdefault(profile.name, {"name": profile.name, "memory": profile.memory, "starts": []})
        if profile.placements and entry["starts"] and entry["memory"] != profile.memory:
            raise ValueError(
                f"{profile.name} has {entry['memory']} units, but {profile.memory} on other GPUs of this model"
            )
        if profile.placements or not entry["starts"]:
            entry |= {"compute": profile.compute, "memory": profile.memory, "max": profile.max_instances}
        entry["starts"] = sorted({*entry["starts"], *(place.start for place in profile.placements)})
    return {
        "name": known.name if known else f"{_product_name(report)}-{report.memory_gb}GB",
        "label": known.label if known else f"{_product_name(report)} {report.memory_gb}GB",
        "aliases": list(known.aliases) if known else [_product_name(report)],
        "pci": list(dict.fromkeys([*(known.pci_ids if known else ()), report.pci_device_id])),
        "memory_gb": known.memory_gb if known else report.memory_gb,
        "memory_grid": known.grid if known and known.has_mig_placements else _memory_grid(report),
        "compute_slices": known.compute if known else max([1, *(each.compute for each in report.mig_profiles)]),
        "placements_verified": known is None or known.verified or _reports_all_placements(report, known),
        "profiles": list(entries.values()),
    }


def model_differences(report: GpuReport, known: GpuModelSpec) -> Iterator[str]:
    """Yield each difference between a GPU's report and its known model."""
    if known.profiles and report.pci_device_id.casefold() not in (pci.casefold() for pci in known.pci_ids):
        yield f"{known.name} is not known with this PCI ID"
    profile_by_name = {profile.name: profile for profile in known.profiles}
    for each in report.mig_profiles:
        profile = profile_by_name.pop(each.name, None)
        if profile is None:
            yield f"{known.name} has no {each.name}, but the GPU has it at {_join_units(each.starts)}"
        else:
            yield from _profile_differences(profile, each)
    for name in profile_by_name:
        yield f"the GPU has no {name}"


def _profile_differences(profile: Profile, reported: MigProfileReport) -> Iterator[str]:
    placements = [(place.start, place.size) for place in profile.placements]
    if placements != sorted(reported.placements):
        known, found = (
            [f"{start}+{size}" for start, size in each] for each in (placements, sorted(reported.placements))
        )
        yield f"{profile.name} is at {_join_units(known)}, but at {_join_units(found)} on the GPU"
    for label, known_value, reported_value in (
        ("compute slices", profile.compute, reported.compute),
        ("max instances", profile.max_instances, reported.max_instances),
    ):
        if known_value != reported_value:
            yield f"{profile.name} has {known_value} {label}, but {reported_value} on the GPU"


def _product_name(report: GpuReport) -> str:
    return report.product.removeprefix("NVIDIA ")


def _memory_grid(report: GpuReport) -> int | None:
    return max((start + size for each in report.mig_profiles for start, size in each.placements), default=None)


def _reports_all_placements(report: GpuReport, known: GpuModelSpec) -> bool:
    reported = {each.name: set(each.starts) for each in report.mig_profiles if each.starts}
    return bool(known.profiles) and all(
        each.name in reported and reported[each.name] >= {place.start for place in each.placements}
        for each in known.profiles
    )


def _profile_entry(reported: MigProfileReport) -> dict[str, Any]:
    sizes = {size for _, size in reported.placements}
    if len(sizes) > 1:
        raise ValueError(f"{reported.name} has placements of {sorted(sizes)} units; such a profile cannot be sold")
    return {
        "name": reported.name,
        "compute": reported.compute,
        "memory": max(sizes, default=1),
        "max": reported.max_instances,
        "starts": reported.starts,
    }


def _join_units(units: Iterable[object]) -> str:
    return ", ".join(map(str, units)) or "no unit"
