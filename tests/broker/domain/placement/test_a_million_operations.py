"""A million random placements and releases: no overlap, no place that a card does not have, one isolation per card."""

from random import Random

from broker.domain.placement.buckets import Buckets
from broker.domain.placement.kinds import everything
from broker.domain.placement.rules import ranks_by_price
from broker.domain.placement.tables import EMPTY
from broker.domain.states import Isolation
from tests.broker.domain.fleet import H100

CARDS, OPERATIONS = 64, 10**6


def test_a_million_random_operations_never_overlap_and_never_leave_the_places_of_a_card() -> None:
    profiles, chance = everything(H100), Random(5).random
    ranks = ranks_by_price(profiles, H100.grid, tuple(float(its.memory) for its in profiles))
    buckets = Buckets(ranks, [card // 8 for card in range(CARDS)])
    units = [{place.start: place.mask for place in its.placements} for its in profiles]
    taken, media, serves = [0] * CARDS, [0] * CARDS, dict[int, Isolation]()
    live: list[tuple[int, int, int]] = []
    placed = refused = 0
    for _ in range(OPERATIONS):
        if chance() < 0.55:
            profile = int(chance() * len(profiles))
            if seat := buckets.place(profile):
                card, start = seat
                mask = units[profile][start]  # a KeyError would be a place that the card does not have
                assert taken[card] & mask == 0
                assert serves.setdefault(card, profiles[profile].isolation) is profiles[profile].isolation
                taken[card] |= mask
                media[card] += profiles[profile].media
                assert media[card] <= 1
                live.append((card, profile, start))
                placed += 1
            else:
                refused += 1
        elif live:
            at = int(chance() * len(live))
            live[at], live[-1] = live[-1], live[at]
            card, profile, start = live.pop()
            buckets.release(card, profile, start)
            taken[card] ^= units[profile][start]
            media[card] -= profiles[profile].media
            if not taken[card]:
                del serves[card]
    assert min(placed, refused) > OPERATIONS // 20  # it was full often enough to be tempted
    for card, profile, start in live:
        buckets.release(card, profile, start)
    assert buckets.state == [EMPTY] * CARDS
