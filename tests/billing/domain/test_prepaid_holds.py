"""Maximum gross amount and caps of prepaid holds."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from billing.domain.money import EXACT_PER_UNIT, half_up
from billing.domain.prepaid_holds import cap_amounts, max_gross


@given(
    lines=st.lists(st.integers(1, 10**16), min_size=1, max_size=5),
    rate_bp=st.sampled_from([0, 700, 1900, 2700]),
    currency=st.sampled_from(["EUR", "JPY", "KWD"]),
)
def test_the_maximum_gross_covers_rounded_lines_and_tax(lines: list[int], rate_bp: int, currency: str) -> None:
    places = {"EUR": 2, "JPY": 0, "KWD": 3}[currency]
    coin = EXACT_PER_UNIT // 10**places
    net = sum(half_up(num, coin) for num in lines)
    tax = half_up(net * rate_bp, 10_000)
    taken = max_gross(sum(lines), rate_bp=rate_bp, pieces=len(lines), currency=currency)
    assert taken % coin == 0
    assert Fraction(taken, coin) >= net + tax


def test_the_maximum_gross_of_zero_is_zero() -> None:
    assert max_gross(0, rate_bp=1900, pieces=3, currency="EUR") == 0


@given(st.dictionaries(st.integers(1, 5), st.integers(0, 100)), st.integers(0, 500))
def test_capped_amounts_add_up_to_the_cap_and_exceed_no_part(parts: dict[int, int], most: int) -> None:
    found = cap_amounts(parts, most)
    assert sum(found.values()) == min(sum(parts.values()), most)
    assert all(0 <= found[key] <= parts[key] for key in parts)
