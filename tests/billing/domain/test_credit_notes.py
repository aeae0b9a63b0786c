"""Credit note limits: partial credits never exceed the invoice line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.domain.credit_notes import (
    CreditTooLarge,
    LineCreditLimit,
    check_credit,
    credit_applied_to_due,
    remaining_amounts,
)

LINES = st.lists(st.integers(0, 10**12), min_size=1, max_size=8)


@given(LINES, st.data())
def test_b19_partial_credits_add_up_to_the_line_total(amounts: list[int], data: st.DataObject) -> None:
    credited, given_back = dict.fromkeys(range(1, len(amounts) + 1), 0), 0
    while True:
        lines = [LineCreditLimit(n, minor, credited[n]) for n, minor in enumerate(amounts, 1)]
        open_lines = remaining_amounts(lines)
        if not open_lines:
            break
        n = data.draw(st.sampled_from(sorted(open_lines)))
        part = data.draw(st.one_of(st.just(open_lines[n]), st.integers(1, open_lines[n])))
        given_back += check_credit(lines, {n: part}, "EUR")
        credited[n] += part
        if data.draw(st.booleans()):
            rest = remaining_amounts(LineCreditLimit(n, minor, credited[n]) for n, minor in enumerate(amounts, 1))
            for number, left in rest.items():
                credited[number] += left
            given_back += sum(rest.values())
    assert given_back == sum(amounts)
    assert list(credited.values()) == amounts


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({}, "Nothing is left"),
        ({3: 1}, "no line 3"),
        ({1: 0}, "The credit for line 1 is zero"),
        ({1: -5}, "The credit for line 1 is zero"),
        ({1: 61}, "At most €0.60"),
        ({1: 1, 2: 1}, "At most €0.00"),
    ],
)
def test_empty_zero_unknown_and_excess_credits_are_refused(wanted: dict[int, int], why: str) -> None:
    with pytest.raises(CreditTooLarge, match=why):
        check_credit([LineCreditLimit(1, 100, 40), LineCreditLimit(2, 7, 7)], wanted, "EUR")


def test_zero_and_negative_lines_cannot_be_credited() -> None:
    assert remaining_amounts([LineCreditLimit(1, -100, 0), LineCreditLimit(2, 0, 0)]) == {}


@pytest.mark.parametrize(("total", "due", "off"), [(50, 200, 50), (200, 150, 150), (200, 0, 0), (5, -1, 0)])
def test_credit_reduces_the_due_amount_at_most_to_zero(total: int, due: int, off: int) -> None:
    assert credit_applied_to_due(total, due=due) == off
