"""What the driver of a node says of its cards, against what is known of their models."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from broker.domain.gpu_models import GpuModelSpec, model_named
from broker.domain.likeness import model_like
from broker.domain.profiles import Profile


@dataclass(frozen=True, slots=True)
class SliceReport:
    """One profile that a card can be cut into, in the words of NVML."""

    name: str  # 1g.10gb
    compute: int
    instances: int
    places: tuple[tuple[int, int], ...]  # first unit and size

    @property
    def starts(self) -> list[int]:
        return sorted(start for start, _ in self.places)


@dataclass(frozen=True, slots=True)
class CardReport:
    """One card; without slices it cannot be cut."""

    product: str
    pci: str
    memory_gb: int
    slices: tuple[SliceReport, ...] = ()


def known_as(report: CardReport, models: Iterable[GpuModelSpec]) -> GpuModelSpec | None:
    """Return the model that a card is one of: by its PCI id, else by its name and its memory."""
    known = tuple(models)
    with suppress(ValueError):
        return model_named(known, report.pci)
    return model_like(report.product, report.memory_gb * 1024, known)


def entry(report: CardReport, known: GpuModelSpec | None) -> dict[str, Any]:
    """Return a card's model as an entry of the geometry file: what is known of it, and what the card has beside.

    Raises ValueError where one profile has places of several sizes, or of another size than is known.
    """
    its = {each.name: _profile(each) for each in report.slices}
    for profile in known.profiles if known else ():
        ours = its.setdefault(profile.name, {"name": profile.name, "memory": profile.memory, "starts": []})
        if profile.placements and ours["starts"] and ours["memory"] != profile.memory:
            raise ValueError(
                f"{profile.name} lies on {ours['memory']} units, on other cards of its model on {profile.memory}"
            )
        if profile.placements or not ours["starts"]:
            ours |= {"compute": profile.compute, "memory": profile.memory, "max": profile.max_instances}
        ours["starts"] = sorted({*ours["starts"], *(place.start for place in profile.placements)})
    return {
        "name": known.name if known else f"{_product(report)}-{report.memory_gb}GB",
        "aliases": list(known.aliases) if known else [_product(report)],
        "pci": list(dict.fromkeys([*(known.pci if known else ()), report.pci])),
        "memory_gb": known.memory_gb if known else report.memory_gb,
        "memory_grid": known.grid if known and known.cuttable else _grid(report),
        "compute_slices": known.compute if known else max([1, *(each.compute for each in report.slices)]),
        "placements_verified": known is None or known.verified or _told_all(report, known),
        "profiles": list(its.values()),
    }


def differences(report: CardReport, known: GpuModelSpec) -> Iterator[str]:
    """Say in what a card's own answer is another than what is known of its model."""
    if report.pci.casefold() not in (pci.casefold() for pci in known.pci):
        yield f"{known.name} is not known under this id"
    of_name = {profile.name: profile for profile in known.profiles}
    for each in report.slices:
        profile = of_name.pop(each.name, None)
        if profile is None:
            yield f"{known.name} has no {each.name}, the card has it at {_units(each.starts)}"
        else:
            yield from _of(profile, each)
    for name in of_name:
        yield f"the card has no {name}"


def _of(profile: Profile, told: SliceReport) -> Iterator[str]:
    places = [(place.start, place.size) for place in profile.placements]
    if places != sorted(told.places):
        known, its = ([f"{start}+{size}" for start, size in each] for each in (places, sorted(told.places)))
        yield f"{profile.name} lies at {_units(known)}, on the card at {_units(its)}"
    for what, ours, theirs in (
        ("compute slices", profile.compute, told.compute),
        ("instances at most", profile.max_instances, told.instances),
    ):
        if ours != theirs:
            yield f"{profile.name} has {ours} {what}, on the card {theirs}"


def _product(report: CardReport) -> str:
    return report.product.removeprefix("NVIDIA ")


def _grid(report: CardReport) -> int | None:
    return max((start + size for each in report.slices for start, size in each.places), default=None)


def _told_all(report: CardReport, known: GpuModelSpec) -> bool:
    told = {each.name: set(each.starts) for each in report.slices if each.starts}
    return all(
        each.name in told and told[each.name] >= {place.start for place in each.placements}
        for each in known.profiles
    )


def _profile(told: SliceReport) -> dict[str, Any]:
    sizes = {size for _, size in told.places}
    if len(sizes) > 1:
        raise ValueError(f"{told.name} has places of {sorted(sizes)} units; such a profile cannot be sold")
    return {
        "name": told.name,
        "compute": told.compute,
        "memory": max(sizes, default=1),
        "max": told.instances,
        "starts": told.starts,
    }


def _units(units: Iterable[object]) -> str:
    return ", ".join(map(str, units)) or "no unit"
