"""Find a legal layout of a node's GPUs from its slice counts per profile.

Any legal layout with these counts is right: slices of one profile on one node are interchangeable, and
nothing is pinned to one of them.
"""

from collections import Counter
from collections.abc import Mapping

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import EMPTY_GPU, GpuState
from broker.domain.geometry.profiles import Profile
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredSlice

MAX_STEPS = 20_000  # candidates tried at most; real nodes need a few dozen


def spread_slices(
    model: GpuModelSpec, counts: Mapping[str, int], gpus: int
) -> tuple[tuple[DiscoveredSlice, ...], ...] | None:
    """Assign slices to GPUs legally and deterministically; None if they do not fit."""
    profiles = [model.profile(name, Isolation.HARDWARE) for name in counts]
    if gpus and all(count % gpus == 0 for count in counts.values()):
        each = _search_placements([(p, counts[p.name] // gpus) for p in profiles], 1)
        if each is not None:
            return each * gpus
    return _search_placements([(profile, counts[profile.name]) for profile in profiles], gpus)


def _search_placements(wanted: list[tuple[Profile, int]], gpus: int) -> tuple[tuple[DiscoveredSlice, ...], ...] | None:
    """Search a placement for each slice, largest first, with backtracking."""
    largest_first = sorted(wanted, key=lambda each: (-each[0].memory, len(each[0].placements), each[0].name))
    queue = [profile for profile, count in largest_first for _ in range(count)]
    states, held, looks = [EMPTY_GPU] * gpus, [list[DiscoveredSlice]() for _ in range(gpus)], Counter[str]()

    def place(at: int) -> bool:
        if at == len(queue):
            return True
        tried: set[GpuState] = set()
        for gpu, state in enumerate(states):
            if state in tried:  # an equal GPU gives an equal result
                continue
            tried.add(state)
            for placement in queue[at].placements:
                looks["all"] += 1
                if looks["all"] > MAX_STEPS:
                    return False
                if not state.fits(queue[at], placement):
                    continue
                states[gpu] = state.with_held(queue[at], placement)
                held[gpu].append(DiscoveredSlice(placement.start, placement.size, queue[at].name))
                if place(at + 1):
                    return True
                states[gpu] = state
                held[gpu].pop()
        return False

    return tuple(tuple(sorted(gpu)) for gpu in held) if place(0) else None
