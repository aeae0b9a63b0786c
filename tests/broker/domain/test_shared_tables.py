import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.domain.placement.buckets import Buckets
from broker.domain.placement.covering import fullest_cuts, marginal_cards
from broker.domain.placement.ranks import ranked
from broker.domain.placement.rules import bid_price
from broker.domain.placement.share_tables import PARTS, share_table
from broker.domain.placement.tables import EMPTY
from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation

GRID = 16


def share(name: str, memory: int, parts: int) -> Profile:
    return Profile(name, parts, memory, (Placement(0, memory),), GRID // memory, False, Isolation.SOFT)


SMALL, MIDDLE, LARGE = share("small", 2, 1), share("middle", 5, 9), share("large", 8, 16)
ALL = (SMALL, MIDDLE, LARGE)


def cards(count: int, *, one_size: bool = False, demand: tuple[float, ...] = (0.5, 0.3, 0.2)) -> Buckets:
    """Cards ranked as sliced ones are: by the prices of the best cuts for a demand."""
    table = share_table(ALL, GRID, one_size=one_size)
    return Buckets(ranked(table, bid_price(table, marginal_cards(fullest_cuts(table), demand))), [0] * count)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, 99)), max_size=40), st.booleans())
def test_no_card_gives_more_memory_or_time_than_it_has(
    steps: list[tuple[bool, int, int]], one_size: bool
) -> None:
    fleet = cards(3, one_size=one_size)
    held: list[tuple[int, int]] = []
    for leaves, kind, pick in steps:
        if leaves and held:
            card, kind = held.pop(pick % len(held))
            fleet.release(card, kind, 0)
        elif not leaves and (got := fleet.place(kind)):
            held.append((got[0], kind))
        elif not leaves:
            assert not any(fits(ALL[kind], on(held, card), one_size=one_size) for card in range(3))
        for card in range(3):
            its = on(held, card)
            assert sum(each.memory for each in its) == GRID - fleet.table.free(fleet.state[card])
            assert sum(each.memory for each in its) <= GRID
            assert sum(each.compute for each in its) <= PARTS
            assert not one_size or len({each.memory for each in its}) <= 1


def on(held: list[tuple[int, int]], card: int) -> list[Profile]:
    return [ALL[kind] for where, kind in held if where == card]


def fits(asked: Profile, its: list[Profile], *, one_size: bool) -> bool:
    return (
        sum(each.memory for each in its) + asked.memory <= GRID
        and sum(each.compute for each in its) + asked.compute <= PARTS
        and not (one_size and any(each.memory != asked.memory for each in its))
    )


def test_an_empty_card_is_opened_last() -> None:
    fleet = cards(2)
    seats = [fleet.place(0) for _ in range(GRID // SMALL.memory + 1)]
    assert len(set(seats[:-1])) == 1
    assert seats[-1] not in seats[:-1]


def test_a_share_goes_where_it_spoils_least_for_the_others() -> None:
    fleet = cards(2)
    fleet.hold(0, 1, 0)
    fleet.hold(1, 2, 0)
    # Beside a middle one another would still fit; beside a large one nothing but small ones do.
    assert fleet.place(0) == (1, 0)


def test_a_card_of_one_size_takes_another_size_only_once_it_is_empty() -> None:
    fleet = cards(1, one_size=True)
    assert fleet.place(0) == (0, 0)
    assert fleet.place(2) is None
    fleet.release(0, 0, 0)
    assert fleet.state == [EMPTY]
    assert fleet.place(2) == (0, 0)


def test_states_stay_few_enough_to_be_ranked() -> None:
    table = share_table([share(f"{m}", m, p) for m in (1, 2, 3) for p in (1, 2, 3)], GRID)
    assert len(table.states) <= (GRID + 1) * (PARTS + 1)


@pytest.mark.parametrize(
    "odd", [share("huge", GRID, PARTS + 1), Profile("none", 1, 0, (), 1, False, Isolation.NONE)]
)
def test_a_share_that_no_card_has_is_refused(odd: Profile) -> None:
    with pytest.raises(ValueError, match=r"sell it in a share that a card has"):
        share_table([odd], GRID)


def test_a_share_that_is_not_there_cannot_be_taken_off() -> None:
    fleet = cards(1)
    with pytest.raises(KeyError, match="profile 0 is at unit 0 of card 0"):
        fleet.release(0, 0, 0)
