"""Rules of legal geometries, checked one by one."""

from collections import Counter

from broker.domain.geometry.gpu_state import Geometry


def geometry_faults(geometry: Geometry, *, grid: int) -> tuple[str, ...]:
    """Return everything illegal about a geometry; empty if a GPU can have it."""
    found = []
    units: Counter[int] = Counter()
    for held in sorted(geometry.held, key=lambda held: held.placement):
        if held.placement not in held.profile.placements:
            found.append(f"{held.profile.name} cannot start at unit {held.placement.start}")
        if held.placement.end > grid:
            found.append(f"{held.profile.name}@{held.placement.start} ends beyond the {grid} units of the GPU")
        units.update(range(held.placement.start, held.placement.end))
    found += [f"unit {unit} is taken {times} times" for unit, times in sorted(units.items()) if times > 1]
    counts = Counter(held.profile for held in geometry.held)
    found += [
        f"{times} of {profile.name}, at most {profile.max_instances} may stand on one GPU"
        for profile, times in counts.items()
        if times > profile.max_instances
    ]
    if sum(times for profile, times in counts.items() if profile.media) > 1:
        found.append("the media engines are given out twice")
    if len({profile.isolation for profile in counts}) > 1:
        found.append("one GPU serves two kinds of isolation")
    return tuple(found)
