"""Three books are compared, and every way in which they can differ is called by its name."""

from dataclasses import replace

import pytest

from billing.domain.stripe_compare import SAYS, Difference, Kind, Ours, Theirs, compare

ONE = Ours("pay_1", "in_1", "succeeded", 200, 200, 200)
PAID = Theirs("in_1", "pay_1", "paid", 200, 200)
OPEN = replace(PAID, status="open", amount_paid=0)
VOID = replace(OPEN, status="void")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([ONE], [PAID]),
        ([replace(ONE, outcome="declined", booked=None)], [VOID]),
        ([replace(ONE, outcome="open", booked=None)], [OPEN]),
        ([replace(ONE, outcome="open", booked=None)], []),
        ([ONE], [PAID, replace(VOID, stripe_id="in_0")]),
        ([ONE], [PAID, replace(OPEN, stripe_id="in_0", status="draft")]),
        ([], [replace(VOID, payment="pay_gone")]),
    ],
)
def test_where_they_agree_there_is_no_difference(ours: list[Ours], theirs: list[Theirs]) -> None:
    assert compare(ours, theirs) == []


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ([replace(ONE, outcome="open", booked=None)], [PAID], Kind.PAID_THERE_OPEN_HERE),
        ([replace(ONE, outcome="declined", booked=None)], [PAID], Kind.PAID_THERE_DECLINED_HERE),
        ([ONE], [], Kind.PAID_HERE_NOT_THERE),
        ([ONE], [VOID], Kind.PAID_HERE_NOT_THERE),
        ([ONE], [replace(PAID, amount_paid=199)], Kind.OTHER_AMOUNT),
        ([ONE], [replace(PAID, total=201)], Kind.OTHER_AMOUNT),
        ([ONE], [PAID, replace(PAID, stripe_id="in_2")], Kind.UNKNOWN_HERE),
        ([ONE], [PAID, replace(PAID, payment="pay_gone")], Kind.UNKNOWN_HERE),
        ([replace(ONE, booked=None)], [PAID], Kind.NOT_BOOKED),
        ([replace(ONE, booked=199)], [PAID], Kind.BOOKED_OTHERWISE),
        ([replace(ONE, outcome="declined")], [VOID], Kind.BOOKED_OTHERWISE),
        ([replace(ONE, back=50)], [PAID], Kind.WENT_BACK),
    ],
)
def test_each_difference_has_its_name(ours: list[Ours], theirs: list[Theirs], kind: Kind) -> None:
    assert [each.kind for each in compare(ours, theirs)] == [kind]


def test_a_difference_says_what_each_book_has() -> None:
    assert compare([replace(ONE, booked=None)], []) == [
        Difference(Kind.PAID_HERE_NOT_THERE, "pay_1", 200, 0, None),
        Difference(Kind.NOT_BOOKED, "pay_1", 200, 0, None),
    ]
    assert compare([], [PAID]) == [Difference(Kind.UNKNOWN_HERE, "in_1", None, 200, None)]


def test_every_kind_says_what_to_do_next() -> None:
    assert set(SAYS) == set(Kind)
    assert all(says.endswith(".") and then.endswith((".", "?")) for says, then in SAYS.values())
