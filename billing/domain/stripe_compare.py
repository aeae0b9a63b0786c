"""Three books about the same money: ours of charges, Stripe's of invoices, and the ledger: where they differ."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from billing.domain.stripe_amounts import of_minor
from billing.domain.stripe_states import GONE


class Kind(StrEnum):
    PAID_THERE_OPEN_HERE = "paid_there_open_here"
    PAID_THERE_DECLINED_HERE = "paid_there_declined_here"
    PAID_HERE_NOT_THERE = "paid_here_not_there"
    OTHER_AMOUNT = "other_amount"
    UNKNOWN_HERE = "unknown_here"
    NOT_BOOKED = "not_booked"
    BOOKED_OTHERWISE = "booked_otherwise"
    WENT_BACK = "went_back"
    REFUND_NOT_THERE = "refund_not_there"
    OPEN_THERE_DECLINED_HERE = "open_there_declined_here"


# What it means, and what a person does next.
SAYS: dict[Kind, tuple[str, str]] = {
    Kind.PAID_THERE_OPEN_HERE: (
        "Stripe was paid, and the payment here still waits.",
        "It is asked about now by itself. If this stays, press Try again on the invoice.",
    ),
    Kind.PAID_THERE_DECLINED_HERE: (
        "Stripe was paid, and the payment here is declined.",
        "Refund it in Stripe's dashboard: the invoice here may be paid by another payment.",
    ),
    Kind.PAID_HERE_NOT_THERE: (
        "The payment here succeeded, and Stripe has no paid invoice for it.",
        "Look for the invoice in Stripe's dashboard. If the money is not there, write to Stripe's support.",
    ),
    Kind.OTHER_AMOUNT: (
        "Stripe took another amount than was asked for.",
        "Refund what is too much in Stripe's dashboard, or ask the tenant for the rest.",
    ),
    Kind.UNKNOWN_HERE: (
        "An invoice at Stripe names a payment of ours that is not in our books, or names it a second time.",
        "If it was paid, refund it there, then acknowledge it here. Was an old backup of the database restored?",
    ),
    Kind.NOT_BOOKED: (
        "The payment succeeded, and the ledger has nothing of it.",
        "It is booked within ten minutes by itself. If this stays, run manage.py verify_ledger.",
    ),
    Kind.BOOKED_OTHERWISE: (
        "The ledger has another amount for the payment than it took, or has one that took nothing.",
        "Run manage.py verify_ledger and look at the transfers of its invoice.",
    ),
    Kind.WENT_BACK: (
        "Money of it went back at Stripe, by a refund there or a lost dispute, and the ledger does not know.",
        "Settle it with the tenant, then acknowledge it here; nothing is booked by itself.",
    ),
    Kind.REFUND_NOT_THERE: (
        "A refund was booked here, and Stripe has sent back less.",
        "Look at the payment's refunds in Stripe's dashboard. What failed there is given back here by itself.",
    ),
    Kind.OPEN_THERE_DECLINED_HERE: (
        "The payment here is declined, and its invoice at Stripe can still be paid.",
        "Void it in Stripe's dashboard: the invoice here may be paid by another payment.",
    ),
}


@dataclass(frozen=True, slots=True)
class Ours:
    """A charge in our books. Amounts in minor units, but `sent`, which is Stripe's integer."""

    payment: str
    stripe_id: str
    outcome: str  # open, succeeded, declined
    minor: int
    sent: int
    booked: int | None  # what the ledger has under its name
    currency: str = "EUR"
    back: int = 0  # refunded, or lost in a dispute
    back_booked: int = 0  # what of that the ledger has


@dataclass(frozen=True, slots=True)
class Theirs:
    """An invoice at Stripe that names a payment of ours."""

    stripe_id: str
    payment: str
    status: str
    total: int
    amount_paid: int


@dataclass(frozen=True, slots=True)
class Difference:
    kind: Kind
    ref: str  # a payment, or an invoice there that nobody knows
    ours: int | None
    theirs: int | None
    booked: int | None
    back: int | None = None  # what went back, where that is what differs


def compare(ours: Iterable[Ours], theirs: Iterable[Theirs]) -> list[Difference]:
    """Return every difference, by payment; a payment may have several."""
    there: defaultdict[str, list[Theirs]] = defaultdict(list)
    for each in theirs:
        there[each.payment].append(each)
    found = []
    for one in sorted(ours, key=lambda each: each.payment):
        found += _of(one, there.pop(one.payment, []))
    for left in there.values():
        found += [_unknown(each) for each in left if each.status not in GONE]
    return found


def _of(one: Ours, there: Sequence[Theirs]) -> list[Difference]:
    mine = next((each for each in there if each.stripe_id == one.stripe_id), None)
    # Drafts that were given up are dropped or swept there; what was finalized a second time is not.
    found = [_unknown(each) for each in there if each is not mine and each.status not in (*GONE, "draft")]
    took = mine.amount_paid if mine else 0
    back, booked_back = of_minor(one.back, one.currency), of_minor(one.back_booked, one.currency)

    def differs(kind: Kind) -> None:
        found.append(Difference(kind, one.payment, one.minor, took, one.booked, one.back or None))

    if one.outcome == "succeeded":
        if mine is None or mine.status != "paid":
            differs(Kind.PAID_HERE_NOT_THERE)
        elif _other_amount(one.sent, mine.total, took, unbooked=back - booked_back):
            differs(Kind.OTHER_AMOUNT)
        if one.booked is None:
            differs(Kind.NOT_BOOKED)
        elif one.booked != one.minor:
            differs(Kind.BOOKED_OTHERWISE)
        if back - booked_back > max(took - one.sent, 0):  # what was too much goes back and is nobody's loss
            differs(Kind.WENT_BACK)
        if booked_back > back:
            differs(Kind.REFUND_NOT_THERE)
        return found
    if one.booked is not None:
        differs(Kind.BOOKED_OTHERWISE)
    declined = one.outcome == "declined"
    if took > back:
        differs(Kind.PAID_THERE_DECLINED_HERE if declined else Kind.PAID_THERE_OPEN_HERE)
    elif declined and mine and mine.status == "open":
        differs(Kind.OPEN_THERE_DECLINED_HERE)
    return found


def _other_amount(sent: int, total: int, took: int, *, unbooked: int) -> bool:
    """Tell whether another amount was taken; not where what was too much went back since then."""
    return total != sent if took == sent else took - unbooked != sent


def _unknown(each: Theirs) -> Difference:
    return Difference(Kind.UNKNOWN_HERE, each.stripe_id, None, each.amount_paid, None)
