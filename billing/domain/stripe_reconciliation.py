"""Comparison of three records of the same money: our charges, Stripe's invoices, and the ledger."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from billing.domain.stripe_amounts import to_stripe
from billing.domain.stripe_states import VOIDED_STATES


class DifferenceKind(StrEnum):
    PAID_THERE_OPEN_HERE = "paid_there_open_here"
    PAID_THERE_DECLINED_HERE = "paid_there_declined_here"
    PAID_HERE_NOT_THERE = "paid_here_not_there"
    OTHER_AMOUNT = "other_amount"
    UNKNOWN_HERE = "unknown_here"
    NOT_BOOKED = "not_booked"
    BOOKED_DIFFERENTLY = "booked_differently"
    REFUNDED_NOT_HERE = "refunded_not_here"
    REFUND_NOT_THERE = "refund_not_there"
    OPEN_THERE_DECLINED_HERE = "open_there_declined_here"


# What it means, and what a person does next.
DIFFERENCE_TEXTS: dict[DifferenceKind, tuple[str, str]] = {
    DifferenceKind.PAID_THERE_OPEN_HERE: (
        "The invoice is paid in Stripe, but the payment here is pending.",
        "The payment is checked automatically. If this stays, press Try again on the invoice.",
    ),
    DifferenceKind.PAID_THERE_DECLINED_HERE: (
        "The invoice is paid in Stripe, but the payment here is declined.",
        "Refund it in Stripe's dashboard: the invoice here may be paid by another payment.",
    ),
    DifferenceKind.PAID_HERE_NOT_THERE: (
        "The payment here succeeded, but Stripe has no paid invoice for it.",
        "Search for the invoice in Stripe's dashboard. If the money is missing, contact Stripe support.",
    ),
    DifferenceKind.OTHER_AMOUNT: (
        "Stripe charged another amount than requested.",
        "Refund the excess in Stripe's dashboard, or ask the tenant for the rest.",
    ),
    DifferenceKind.UNKNOWN_HERE: (
        "An invoice in Stripe refers to a payment that does not exist here, or refers to it twice.",
        "If it was paid, refund it in Stripe, then acknowledge it here. Was an old backup restored?",
    ),
    DifferenceKind.NOT_BOOKED: (
        "The payment succeeded, but it is not in the ledger.",
        "It is booked automatically within ten minutes. If this stays, run manage.py verify_ledger.",
    ),
    DifferenceKind.BOOKED_DIFFERENTLY: (
        "The ledger amount differs from the charged amount of the payment.",
        "Run manage.py verify_ledger and check the transfers of the invoice.",
    ),
    DifferenceKind.REFUNDED_NOT_HERE: (
        "Stripe refunded money or lost a chargeback that the ledger does not have.",
        "Settle it with the tenant, then acknowledge it here. Nothing is booked automatically.",
    ),
    DifferenceKind.REFUND_NOT_THERE: (
        "A refund was booked here, but Stripe refunded less.",
        "Check the payment's refunds in Stripe's dashboard. Failed refunds return to the balance automatically.",
    ),
    DifferenceKind.OPEN_THERE_DECLINED_HERE: (
        "The payment here is declined, but its invoice in Stripe can still be paid.",
        "Void it in Stripe's dashboard: the invoice here may be paid by another payment.",
    ),
}


@dataclass(frozen=True, slots=True)
class OurCharge:
    """A charge in our records, in minor units; `sent` is Stripe's integer."""

    payment: str
    stripe_id: str
    outcome: str  # open, succeeded, declined
    minor: int
    sent: int
    booked: int | None  # the amount in the ledger
    currency: str = "EUR"
    back: int = 0  # refunded or lost in a dispute
    back_booked: int = 0  # of that, booked in the ledger


@dataclass(frozen=True, slots=True)
class StripeInvoiceRecord:
    """An invoice at Stripe that refers to one of our payments."""

    stripe_id: str
    payment: str
    status: str
    total: int
    amount_paid: int


@dataclass(frozen=True, slots=True)
class ReconciliationDifference:
    kind: DifferenceKind
    ref: str  # a payment, or an unknown invoice at Stripe
    ours: int | None
    theirs: int | None
    booked: int | None
    back: int | None = None  # the returned amount, if that is what differs


def find_differences(
    ours: Iterable[OurCharge], theirs: Iterable[StripeInvoiceRecord]
) -> list[ReconciliationDifference]:
    """Return every difference, ordered by payment; a payment may have several."""
    there: defaultdict[str, list[StripeInvoiceRecord]] = defaultdict(list)
    for each in theirs:
        there[each.payment].append(each)
    found = []
    for one in sorted(ours, key=lambda each: each.payment):
        found += _differences_of(one, there.pop(one.payment, []))
    for left in there.values():
        found += [_unknown_invoice(each) for each in left if each.status not in VOIDED_STATES]
    return found


def _differences_of(one: OurCharge, there: Sequence[StripeInvoiceRecord]) -> list[ReconciliationDifference]:
    remote = next((each for each in there if each.stripe_id == one.stripe_id), None)
    # Abandoned drafts are deleted or voided there; a second finalized invoice is not.
    found = [
        _unknown_invoice(each) for each in there if each is not remote and each.status not in (*VOIDED_STATES, "draft")
    ]
    took = remote.amount_paid if remote else 0
    back, booked_back = to_stripe(one.back, one.currency), to_stripe(one.back_booked, one.currency)

    def differs(kind: DifferenceKind) -> None:
        found.append(ReconciliationDifference(kind, one.payment, one.minor, took, one.booked, one.back or None))

    if one.outcome == "succeeded":
        if remote is None or remote.status != "paid":
            differs(DifferenceKind.PAID_HERE_NOT_THERE)
        elif _is_other_amount(one.sent, remote.total, took, unbooked=back - booked_back):
            differs(DifferenceKind.OTHER_AMOUNT)
        if one.booked is None:
            differs(DifferenceKind.NOT_BOOKED)
        elif one.booked != one.minor:
            differs(DifferenceKind.BOOKED_DIFFERENTLY)
        if back - booked_back > max(took - one.sent, 0):  # a returned overpayment is not a loss
            differs(DifferenceKind.REFUNDED_NOT_HERE)
        if booked_back > back:
            differs(DifferenceKind.REFUND_NOT_THERE)
        return found
    if one.booked is not None:
        differs(DifferenceKind.BOOKED_DIFFERENTLY)
    declined = one.outcome == "declined"
    if took > back:
        differs(DifferenceKind.PAID_THERE_DECLINED_HERE if declined else DifferenceKind.PAID_THERE_OPEN_HERE)
    elif declined and remote and remote.status == "open":
        differs(DifferenceKind.OPEN_THERE_DECLINED_HERE)
    return found


def _is_other_amount(sent: int, total: int, took: int, *, unbooked: int) -> bool:
    """Return whether a different amount was collected.

    An overpayment that was refunded since then does not count.
    """
    return total != sent if took == sent else took - unbooked != sent


def _unknown_invoice(each: StripeInvoiceRecord) -> ReconciliationDifference:
    return ReconciliationDifference(DifferenceKind.UNKNOWN_HERE, each.stripe_id, None, each.amount_paid, None)
