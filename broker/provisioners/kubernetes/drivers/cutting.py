"""From how many slices a node has to where they stand: on a fixed layout any legal cut that gives the counts is right,
because slices of one profile on one node are interchangeable and nothing pins one."""

from collections import Counter
from collections.abc import Mapping

from broker.domain.geometry import EMPTY, CardState
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.profiles import Profile
from broker.domain.states import Isolation
from broker.provisioners.kubernetes.inventory import Cut

LOOKS = 20_000  # at a candidate; real nodes need a few dozen


def cuts_of(model: GpuModelSpec, counts: Mapping[str, int], cards: int) -> tuple[tuple[Cut, ...], ...] | None:
    """Spread slices over cards legally, the same way every time; None when they do not fit on so many cards."""
    profiles = [model.profile(name, Isolation.HARDWARE) for name in counts]
    if cards and all(count % cards == 0 for count in counts.values()):
        each = _on_cards([(p, counts[p.name] // cards) for p in profiles], 1)
        if each is not None:
            return each * cards
    return _on_cards([(profile, counts[profile.name]) for profile in profiles], cards)


def _on_cards(wanted: list[tuple[Profile, int]], cards: int) -> tuple[tuple[Cut, ...], ...] | None:
    """Search for a place for each, the largest first, stepping back when one is left without."""
    largest_first = sorted(wanted, key=lambda each: (-each[0].memory, len(each[0].placements), each[0].name))
    queue = [profile for profile, count in largest_first for _ in range(count)]
    states, held, looks = [EMPTY] * cards, [list[Cut]() for _ in range(cards)], Counter[str]()

    def place(at: int) -> bool:
        if at == len(queue):
            return True
        tried: set[CardState] = set()
        for card, state in enumerate(states):
            if state in tried:  # an equal card gives an equal answer
                continue
            tried.add(state)
            for placement in queue[at].placements:
                looks["all"] += 1
                if looks["all"] > LOOKS:
                    return False
                if not state.fits(queue[at], placement):
                    continue
                states[card] = state.with_held(queue[at], placement)
                held[card].append(Cut(placement.start, placement.size, queue[at].name))
                if place(at + 1):
                    return True
                states[card] = state
                held[card].pop()
        return False

    return tuple(tuple(sorted(card)) for card in held) if place(0) else None
