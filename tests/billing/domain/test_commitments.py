"""Commitment coverage against a per-second oracle."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from billing.domain.commitments import ActiveUnits, FreeUnits, covered_unit_seconds

SECONDS = 60


@st.composite
def lease_usages(draw: st.DrawFn) -> list[ActiveUnits]:
    """Return leases with adjacent, separated and overlapping intervals."""
    found = []
    for name in range(draw(st.integers(0, 7))):
        at = draw(st.integers(0, SECONDS))
        for n in range(draw(st.integers(0, 4))):
            end = at + draw(st.integers(1, 20))
            found.append(ActiveUnits(f"lse_{name}", at, end, draw(st.integers(1, 4)), (name, n)))
            at = end + draw(st.sampled_from([0, 0, 3]))
    return draw(st.permutations(found))


@given(lease_usages(), st.integers(0, 30), st.integers(1, 60), st.integers(1, 6))
def test_covered_usage_equals_a_second_by_second_calculation(
    uses: list[ActiveUnits], since: int, lasts: int, units: int
) -> None:
    wanted, unused = dict[tuple[object, ...], Fraction](), Fraction(0)
    for second in range(since, since + lasts):
        left = units
        for use in sorted(uses, key=lambda use: use.lease):
            if use.start <= second < use.end:
                wanted[use.key] = wanted.get(use.key, Fraction(0)) + min(left, use.units)
                left -= min(left, use.units)
        unused += left
    free = FreeUnits(since, since + lasts, units)
    (found,) = covered_unit_seconds(uses, [free])
    assert found == {key: seconds for key, seconds in wanted.items() if seconds}
    assert free.left == unused
    assert sum(found.values()) + free.left == units * lasts


def test_fully_used_units_are_stored_as_one_step() -> None:
    free = FreeUnits(0, 100, 1)
    for start in range(0, 100, 10):
        assert free.take(start, start + 10, 3) == 10
    assert (free.left, len(free._at)) == (0, 2)
    assert free.take(5, 95, 1) == 0


def test_usage_outside_the_commitment_consumes_nothing() -> None:
    free = FreeUnits(50, 60, 2)
    assert [free.take(0, 50, 1), free.take(60, 90, 1), free.take(55, 55, 1)] == [0, 0, 0]
    assert free.left == 20


@given(lease_usages(), st.lists(st.tuples(st.integers(0, 60), st.integers(1, 60), st.integers(1, 4)), max_size=4))
def test_several_commitments_cover_in_order_second_by_second(
    uses: list[ActiveUnits], spans: list[tuple[int, int, int]]
) -> None:
    wanted = [dict[tuple[object, ...], int]() for _ in spans]
    for second in range(130):
        left = [units if since <= second < since + lasts else 0 for since, lasts, units in spans]
        for use in sorted(uses, key=lambda use: use.lease):
            need = use.units if use.start <= second < use.end else 0
            for n, free in enumerate(left):
                share = min(free, need)
                wanted[n][use.key] = wanted[n].get(use.key, 0) + share
                left[n], need = free - share, need - share
    free = [FreeUnits(since, since + lasts, units) for since, lasts, units in spans]
    found = covered_unit_seconds(uses, free)
    assert found == [{key: seconds for key, seconds in each.items() if seconds} for each in wanted]
    assert [sum(each.values()) + one.left for each, one in zip(found, free, strict=True)] == [
        lasts * units for _, lasts, units in spans
    ]
