"""Differences between Stripe, our payments and the ledger."""

from dataclasses import replace

import pytest

from billing.domain.stripe_reconciliation import (
    DIFFERENCE_TEXTS,
    DifferenceKind,
    OurCharge,
    ReconciliationDifference,
    StripeInvoiceRecord,
    find_differences,
)

ONE = OurCharge("pay_1", "in_1", "succeeded", 200, 200, 200)
PAID = StripeInvoiceRecord("in_1", "pay_1", "paid", 200, 200)
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
def test_matching_records_have_no_difference(ours: list[OurCharge], theirs: list[StripeInvoiceRecord]) -> None:
    assert find_differences(ours, theirs) == []


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ([replace(ONE, outcome="open", booked=None)], [PAID], DifferenceKind.PAID_THERE_OPEN_HERE),
        ([replace(ONE, outcome="declined", booked=None)], [PAID], DifferenceKind.PAID_THERE_DECLINED_HERE),
        ([ONE], [], DifferenceKind.PAID_HERE_NOT_THERE),
        ([ONE], [VOID], DifferenceKind.PAID_HERE_NOT_THERE),
        ([ONE], [replace(PAID, amount_paid=199)], DifferenceKind.OTHER_AMOUNT),
        ([ONE], [replace(PAID, total=201)], DifferenceKind.OTHER_AMOUNT),
        ([ONE], [PAID, replace(PAID, stripe_id="in_2")], DifferenceKind.UNKNOWN_HERE),
        ([ONE], [PAID, replace(PAID, payment="pay_gone")], DifferenceKind.UNKNOWN_HERE),
        ([replace(ONE, booked=None)], [PAID], DifferenceKind.NOT_BOOKED),
        ([replace(ONE, booked=199)], [PAID], DifferenceKind.BOOKED_DIFFERENTLY),
        ([replace(ONE, outcome="declined")], [VOID], DifferenceKind.BOOKED_DIFFERENTLY),
        ([replace(ONE, back=50)], [PAID], DifferenceKind.REFUNDED_NOT_HERE),
    ],
)
def test_each_difference_is_classified(
    ours: list[OurCharge], theirs: list[StripeInvoiceRecord], kind: DifferenceKind
) -> None:
    assert [each.kind for each in find_differences(ours, theirs)] == [kind]


def test_a_difference_states_the_amount_in_each_system() -> None:
    assert find_differences([replace(ONE, booked=None)], []) == [
        ReconciliationDifference(DifferenceKind.PAID_HERE_NOT_THERE, "pay_1", 200, 0, None),
        ReconciliationDifference(DifferenceKind.NOT_BOOKED, "pay_1", 200, 0, None),
    ]
    assert find_differences([], [PAID]) == [
        ReconciliationDifference(DifferenceKind.UNKNOWN_HERE, "in_1", None, 200, None)
    ]


def test_every_difference_kind_has_an_explanation_and_a_next_step() -> None:
    assert set(DIFFERENCE_TEXTS) == set(DifferenceKind)
    assert all(says.endswith(".") and then.endswith((".", "?")) for says, then in DIFFERENCE_TEXTS.values())
