"""Allocation of grants to invoice lines by order and scope."""

from datetime import UTC, datetime, timedelta
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from billing.domain.grants import AvailableGrant, LinePart, allocate_grants, limit_to_total, split_line

MONTH = datetime(2026, 11, 1, tzinfo=UTC)
PROJECTS = ("root", "left", "right")
OFFERINGS = ("small", "large")


def line_part(
    line: int, minor: int, *, project: str = "root", offering: str = "small", until: datetime = MONTH
) -> LinePart:
    path = ("root",) if project == "root" else ("root", project)
    return LinePart(line, path, offering, until, minor)


credits = st.builds(
    AvailableGrant,
    id=st.uuids().map(str),
    left=st.integers(1, 100),
    priority=st.integers(0, 3),
    expires_at=st.sampled_from([None, MONTH, MONTH - timedelta(days=5)]),
    project=st.sampled_from(["", *PROJECTS]),
    offering=st.sampled_from(["", *OFFERINGS]),
)
parts = st.builds(
    line_part,
    line=st.integers(1, 4),
    minor=st.integers(1, 100),
    project=st.sampled_from(PROJECTS),
    offering=st.sampled_from(OFFERINGS),
    until=st.sampled_from([MONTH, MONTH - timedelta(days=5)]),
)


def max_payable(some: list[AvailableGrant], lines: list[LinePart]) -> int:
    """Return the most that the tightest choice of grants can pay."""
    return min(
        sum(credit.left for credit in used)
        + sum(line.minor for line in lines if any(c.covers(line) for c in some if c not in used))
        for size in range(len(some) + 1)
        for used in combinations(some, size)
    )


@given(st.lists(credits, max_size=4, unique_by=lambda credit: credit.id), st.lists(parts, max_size=6))
def test_grants_pay_the_maximum_possible_in_their_draw_order(some: list[AvailableGrant], lines: list[LinePart]) -> None:
    found = allocate_grants(some, lines)
    paid = {credit.id: sum(minor for (key, _), minor in found.items() if key == credit.id) for credit in some}
    ranked = sorted(some, key=lambda credit: credit.draw_order)
    for n in range(len(ranked) + 1):  # what the first of them pay together is all that they could
        assert sum(paid[credit.id] for credit in ranked[:n]) == max_payable(ranked[:n], lines)
    assert all(paid[credit.id] <= credit.left for credit in some)
    for line in {part.line for part in lines}:
        whole = sum(part.minor for part in lines if part.line == line)
        assert sum(minor for (_, n), minor in found.items() if n == line) <= whole


@given(st.lists(credits, max_size=3, unique_by=lambda credit: credit.id), st.lists(parts, max_size=5))
def test_no_grant_pays_outside_its_scope(some: list[AvailableGrant], lines: list[LinePart]) -> None:
    by_id = {credit.id: credit for credit in some}
    for (key, n), minor in allocate_grants(some, lines).items():
        assert 0 < minor <= sum(line.minor for line in lines if line.line == n and by_id[key].covers(line))


def test_allocation_does_not_depend_on_the_input_order_of_grants() -> None:
    some = [
        AvailableGrant("b", 10, 1),
        AvailableGrant("a", 10, 1),
        AvailableGrant("c", 10, 1, MONTH),
        AvailableGrant("d", 10, 0),
    ]
    assert allocate_grants(some, [line_part(1, 35)]) == allocate_grants(some[::-1], [line_part(1, 35)])
    assert allocate_grants(some, [line_part(1, 25)]) == {("d", 1): 10, ("c", 1): 10, ("a", 1): 5}


def test_a_line_is_split_where_grants_expire_and_the_slices_add_up() -> None:
    early, late = MONTH - timedelta(days=9), MONTH - timedelta(days=2)
    found = split_line(line_part(1, 100), {early: 30, late: 90})
    assert [(each.until, each.minor) for each in found] == [(early, 30), (late, 60), (MONTH, 10)]


def test_rounding_makes_no_slice_negative_or_larger_than_the_line() -> None:
    early, late = MONTH - timedelta(days=9), MONTH - timedelta(days=2)
    assert [each.minor for each in split_line(line_part(1, 100), {early: 101, late: 100})] == [100]
    assert [each.minor for each in split_line(line_part(1, 100), {early: 50, late: 49, MONTH: 3})] == [50, 50]
    assert split_line(line_part(1, 0), {}) == []


def test_parts_beyond_the_total_are_cut_from_the_last_lines() -> None:
    lines = [line_part(1, 50), line_part(2, 30), line_part(3, 20)]
    assert [(each.line, each.minor) for each in limit_to_total(lines, 60)] == [(1, 50), (2, 10)]
    assert limit_to_total(lines, 0) == []
    assert limit_to_total(lines, 200) == lines
