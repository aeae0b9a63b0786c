"""The language of mig-parted: which cuts a node says its cards may have, and the layout we want in its words."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from broker.domain.cuts import CARD, Cut

NAME, AGAIN = "gpub-", "-again"


def most_per_card(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the profiles that a node's own configs name, and the most of each that one card may have.

    Raises ValueError for what is no such document, for planning on a guess would cut cards into the impossible.
    """
    configs = document.get("mig-configs")
    if not isinstance(configs, Mapping):
        raise ValueError("there is no mig-configs in it; it is not what mig-manager writes")
    most: dict[str, int] = {}
    for name, entries in configs.items():
        for entry in entries if isinstance(entries, list) else [entries]:
            devices = entry.get("mig-devices") if isinstance(entry, Mapping) else None
            for profile, count in (devices or {}).items():
                if not isinstance(count, int) or count < 0:
                    raise ValueError(f"config {name} wants {count!r} of {profile}, which is no number")
                most[str(profile)] = max(most.get(str(profile), 0), count)
    return {profile: count for profile, count in most.items() if count}


def common(told: Iterable[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Return what the cards of all of some nodes can have; None where each can have all that its model can."""
    limits = [each for each in told if each is not None]
    if not limits:
        return None
    return {name: min(each.get(name, 0) for each in limits) for name in limits[0]}


def config_of(cuts: Mapping[int, Cut]) -> list[dict[str, Any]]:
    """Write a node's layout as one config: an entry for each way in which any of its cards is cut."""
    return [
        {"devices": sorted(at for at, each in cuts.items() if each == cut), "mig-enabled": False}
        if cut.whole
        else {
            "devices": sorted(at for at, each in cuts.items() if each == cut),
            "mig-enabled": True,
            "mig-devices": dict(cut.counts),
        }
        for cut in sorted(set(cuts.values()))
    ]


def name_of(cuts: Mapping[int, Cut]) -> str:
    """Name a layout by what it is, so that one layout has one name wherever it is wanted."""
    text = json.dumps(config_of(cuts), sort_keys=True)
    return NAME + hashlib.sha256(text.encode()).hexdigest()[:16]


def alias_of(name: str) -> str:
    """Return the other name of the same layout: a node only looks at a name that changed."""
    return name + AGAIN


def slots_of(cuts: Iterable[Cut]) -> dict[str, int]:
    """Add up what a node cut so offers, uncut cards under `card`."""
    slots: dict[str, int] = {}
    for cut in cuts:
        for profile, count in cut.counts:
            slots[profile] = slots.get(profile, 0) + count
    return slots


def resource_of(profile: str) -> str:
    """Return the name under which the device plugin offers a profile."""
    return "nvidia.com/gpu" if profile == CARD else "nvidia.com/mig-" + profile.replace("+", ".", 1)


def profile_of(resource: str) -> str | None:
    """Return the profile that a node offers under a name; None for what is no slice of a card."""
    if resource == "nvidia.com/gpu":
        return CARD
    head, _, rest = resource.partition("nvidia.com/mig-")
    shape, dot, attributes = rest.partition("gb")
    if head or not dot:
        return None
    return shape + "gb" + attributes.replace(".", "+", 1)
