"""Slices that are left cut on a card when their leases have gone: warm, until something takes their room.

They count as free. To whoever asks for the same slice at the same place nothing need be cut; whatever else overlaps one
destroys it first. Only cards that are cut for each lease have any, and only where nobody destroys what has ended.
"""

from collections.abc import Iterable
from enum import IntEnum

from broker.domain.geometry import Held
from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation

Warm = frozenset[Held]  # the slices that are left cut on a card
COLD = Warm()


class Cutting(IntEnum):
    """What must be done to a card for a slice to be had at a place, the quickest first."""

    WARM = 0  # nothing: just that is left cut there
    FREE = 1  # it is cut where nothing is
    ANEW = 2  # what is left cut there is destroyed first


def is_cut(profile: Profile) -> bool:
    """Tell whether it is a slice, which stays when its lease has gone; a whole card and a share leave nothing."""
    return profile.isolation is Isolation.HARDWARE


def bars(left: Held, profile: Profile, placement: Placement) -> bool:
    """Tell whether a slice that is left cut must be destroyed before a profile can be had at a placement.

    They overlap, or want the same media engines, or the card changes from slices to something else.
    """
    return not is_cut(profile) or left.placement.overlaps(placement) or (left.profile.media and profile.media)


def after_placing(warm: Warm, profile: Profile, placement: Placement) -> Warm:
    """Return what is still left cut once a profile was placed; the slice itself is in use, and no longer warm."""
    return frozenset(left for left in warm if not bars(left, profile, placement))


def after_release(warm: Warm, profile: Profile, placement: Placement) -> Warm:
    """Return what is left cut once a profile was released."""
    return warm | {Held(placement, profile)} if is_cut(profile) else warm


def still_cut(held: Iterable[Held], ended: Iterable[Held]) -> Warm:
    """Return what is left cut on a card beside what is held there, by what ended there, the latest first.

    An ended slice is still there when nothing that took its room came after it.
    """
    later, found = list(held), set[Held]()
    if not all(is_cut(each.profile) for each in later):
        return COLD
    for each in ended:
        if not is_cut(each.profile):
            break  # nothing from before is left: the card was something else then
        if not any(bars(each, other.profile, other.placement) for other in later):
            found.add(each)
        later.append(each)
    return frozenset(found)


def cutting(warm: Warm, profile: Profile, placement: Placement) -> Cutting:
    """Return what must be done for a profile at a placement that is free."""
    if Held(placement, profile) in warm:
        return Cutting.WARM
    return Cutting.ANEW if any(bars(left, profile, placement) for left in warm) else Cutting.FREE
