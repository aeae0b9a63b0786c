"""Collects through Stripe: an invoice there for each charge, made of our own amounts, and paid with the saved card.

We rate, Stripe only collects. Its invoice is made, filled, compared with ours, finalized and paid, each step once
(commands.py). A card that is refused ends the charge, and the invoice at Stripe is voided: nothing is ever taken
under that key again. The next payment of our invoice is another charge, with an invoice of its own there.
"""

from datetime import datetime

from billing.domain.stripe_events import GATEWAY
from billing.domain.stripe_states import GONE, Seen, Verdict, judge, refusal
from billing.gateways.stripe import books, refunds, steps
from billing.gateways.stripe.commands import Answer
from billing.models import StripeCharge, StripeOutcome
from ports.payments import Charge, Declined, Outcome, Rejected, SendBack, Succeeded, Unanswered, Unreachable

TOO_SMALL = "amount_too_small"
TOO_SMALL_SAID = "It is less than Stripe collects in this currency. Pay it by transfer."
WITHDRAWN = "withdrawn"
WITHDRAWN_SAID = "It was withdrawn before anything was taken."
SLOW_S = 1800  # a debit takes days; its webhook is faster than this


class StripeGateway:
    """Takes the money of a charge with the card that its tenant saved at Stripe."""

    name = GATEWAY

    def charge(self, charge: Charge, *, now: datetime) -> Outcome:
        book = books.open_(charge, now=now)
        if book.outcome == StripeOutcome.OPEN:
            book = _ready(book, charge, now)
        if book.outcome == StripeOutcome.OPEN:
            book = _paid(book, now)
        if book.outcome == StripeOutcome.SUCCEEDED:
            return Succeeded(book.stripe_id)
        return Declined(book.reason, book.code)

    def withdraw(self, charge: Charge, *, now: datetime) -> Outcome:
        book = books.withdrawn(charge, now=now)
        if book.outcome == StripeOutcome.OPEN:
            book = _withdrawn(book, now)
        if book.outcome == StripeOutcome.SUCCEEDED:
            return Succeeded(book.stripe_id)
        return Declined(book.reason, book.code)

    def refund(self, back: SendBack, *, now: datetime) -> Outcome:
        return refunds.send(back, now=now)


def _withdrawn(book: StripeCharge, now: datetime) -> StripeCharge:
    """Void or delete its invoice at Stripe, and only then say that nothing is taken; who paid there has paid."""
    found = book.stripe_id or steps.sought(book, now=now)
    if not found:
        return books.settle(book, StripeOutcome.DECLINED, code=WITHDRAWN, reason=WITHDRAWN_SAID, now=now)
    books.found(book, found)
    seen = steps.seen(book)
    if seen is None or seen.status == "draft":
        if seen is not None:
            steps.drop(book, now=now)
        return books.settle(book, StripeOutcome.DECLINED, code=WITHDRAWN, reason=WITHDRAWN_SAID, now=now)
    verdict = judge(seen, book.sent_minor)
    if verdict is Verdict.PAID:
        return books.settle(book, StripeOutcome.SUCCEEDED, now=now)
    if verdict is Verdict.ODD:
        raise _odd(book, seen)
    if seen.status in GONE:
        return books.settle(book, StripeOutcome.DECLINED, code=WITHDRAWN, reason=WITHDRAWN_SAID, now=now)
    if seen.intent in ("processing", "succeeded"):
        raise Unanswered("the bank has not answered Stripe yet", again_in_s=SLOW_S)
    return _refused(book, WITHDRAWN, WITHDRAWN_SAID, now)


def _ready(book: StripeCharge, charge: Charge, now: datetime) -> StripeCharge:
    """Have an invoice at Stripe that can be paid; no card is asked on the way."""
    try:
        books.found(book, str(steps.create(book, charge, now=now)["id"]))
        filled = steps.fill(book, charge, now=now)
        if (filled["total"], filled["amount_due"]) != (book.sent_minor, book.sent_minor):
            return _drop(book, filled, now)
        steps.finalize(book, now=now)
    except Unreachable:
        raise
    except Unanswered as silence:  # whatever became of it, nothing was taken
        raise Unreachable(str(silence), again_in_s=silence.again_in_s) from None
    return book


def _drop(book: StripeCharge, filled: Answer, now: datetime) -> StripeCharge:
    """Delete a draft that would not collect what is due: once finalized, Stripe settles it from its own balance."""
    steps.drop(book, now=now)
    total, due = filled["total"], filled["amount_due"]
    if total == book.sent_minor and due == 0:
        return books.settle(book, StripeOutcome.DECLINED, code=TOO_SMALL, reason=TOO_SMALL_SAID, now=now)
    books.give_up(book)
    if total == book.sent_minor:
        raise Rejected(
            f"Stripe keeps a balance for this tenant and would take {due} and not {total}, so nothing was charged."
            " Set that balance to nothing in Stripe's dashboard.",
            code="balance_at_stripe",
        )
    raise Rejected(
        f"Stripe added our lines up to {total} and not to {book.sent_minor}, so nothing was charged.",
        code="total_differs",
    )


def _paid(book: StripeCharge, now: datetime) -> StripeCharge:
    """Ask the card, or look what became of it, and write that; raises Unanswered while nobody knows."""
    answer = steps.pay(book, now=now)
    if "declined" in answer:
        return _refused(book, answer["declined"], answer["reason"], now)
    seen = steps.seen_in(answer)
    if seen.status == "open":
        seen = _looked(book)
    verdict = judge(seen, book.sent_minor)
    if verdict is Verdict.PAID:
        return books.settle(book, StripeOutcome.SUCCEEDED, now=now)
    if verdict is Verdict.REFUSED:
        return _refused(book, *refusal(seen), now)
    if verdict is Verdict.UNDER_WAY:
        raise Unanswered("the bank has not answered Stripe yet", again_in_s=SLOW_S)
    raise _odd(book, seen)


def _refused(book: StripeCharge, code: str, reason: str, now: datetime) -> StripeCharge:
    """Void the invoice at Stripe, and only then say no. Who paid it there meanwhile has paid."""
    try:
        steps.void(book, now=now)
    except Rejected:
        if judge(_looked(book), book.sent_minor) is Verdict.PAID:
            return books.settle(book, StripeOutcome.SUCCEEDED, now=now)
        raise
    return books.settle(book, StripeOutcome.DECLINED, code=code, reason=reason, now=now)


def _looked(book: StripeCharge) -> Seen:
    """Look at its invoice, which must be there."""
    if (seen := steps.seen(book)) is None:
        raise Rejected(f"Stripe has no invoice {book.stripe_id} any longer.", code="resource_missing")
    return seen


def _odd(book: StripeCharge, seen: Seen) -> Rejected:
    return Rejected(
        f"Stripe's invoice {book.stripe_id} is {seen.status} {seen.intent}, {seen.amount_paid} of {seen.total} paid,"
        " which was not foreseen. Look at it in Stripe's dashboard.",
        code="unforeseen_at_stripe",
    )
