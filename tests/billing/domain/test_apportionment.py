"""Apportionment of totals by weight without loss."""

from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from billing.domain.apportionment import RunningApportionment, apportion

TOTALS = st.integers(-(10**12), 10**12)
WEIGHTS = st.lists(st.integers(-(10**20), 10**20), min_size=1, max_size=30)


@given(TOTALS, WEIGHTS)
def test_shares_add_up_to_the_total_and_deviate_by_less_than_one(total: int, weights: list[int]) -> None:
    found = apportion(total, dict(enumerate(weights)))
    assert sum(found.values()) == total
    assert list(found) == list(range(len(weights)))
    if whole := sum(weights):
        assert all(abs(found[n] - Fraction(total * each, whole)) < 1 for n, each in enumerate(weights))


@given(st.integers(-5, 5), WEIGHTS, st.integers(1, 10**6))
def test_running_shares_add_up_and_only_the_first_that_is_not_zero_carries_the_rounding(
    rounded: int, exact: list[int], unit: int
) -> None:
    assume(any(exact))
    whole = sum(exact) // unit + rounded
    cut = RunningApportionment(whole, exact=sum(exact), unit=unit)
    pieces = [cut.next(each) for each in exact]
    assert sum(pieces) == whole
    pieces[next(n for n, each in enumerate(exact) if each)] -= rounded
    assert all(abs(piece - Fraction(each, unit)) < 1 for piece, each in zip(pieces, exact, strict=True))


def test_the_largest_remainders_get_the_odd_cents_and_the_first_of_equals() -> None:
    assert apportion(100, {"a": 1, "b": 1, "c": 1}) == {"a": 34, "b": 33, "c": 33}
    assert apportion(10, {"a": 14, "b": 86}) == {"a": 1, "b": 9}
    assert apportion(10, {"a": 16, "b": 84}) == {"a": 2, "b": 8}


def test_a_negative_total_is_apportioned_like_a_positive_one() -> None:
    assert apportion(-100, {"a": -1, "b": -1, "c": -1}) == {"a": -33, "b": -33, "c": -34}


def test_no_parts_give_no_shares_and_zero_weights_give_all_to_the_first() -> None:
    assert apportion(5, {}) == {}
    assert apportion(5, {"a": 3, "b": -3}) == {"a": 5, "b": 0}
