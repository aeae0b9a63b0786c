"""Texts about a disputed amount: before the answer, and after it was credited."""

from billing.domain.money import Money
from billing.models import CreditNote, Invoice, PaymentStatus
from billing.models.payments import UNSETTLED
from ports import payments

REFUND_NOTE = " and can be refunded to your payment card"


def has_pending_payment(invoice: Invoice) -> bool:
    """Return whether a payment of the invoice has an unknown outcome."""
    return invoice.payments.filter(status__in=UNSETTLED).exists()


def describe_before_dispute(invoice: Invoice, *, paying: bool) -> str:
    """Describe to a tenant what happens after disputing a line."""
    if paying:
        return (
            "Your operator reviews the dispute once the payment in progress has settled. Credited amounts are added to"
            " your balance."
        )
    if invoice.due <= 0:
        return "Your operator reviews the dispute. The invoice is paid, so credited amounts are added to your balance."
    return (
        "Your operator reviews the dispute. Until it is resolved, the amount is not collected, and no payment of the"
        " invoice starts automatically."
    )


def describe_open_dispute(invoice: Invoice, minor: int, *, paying: bool) -> str:
    """Describe what happens to a disputed amount, with tax, until it is answered."""
    amount, over = Money(minor, invoice.currency), minor - min(minor, max(invoice.due, 0))
    if paying:
        return (
            "A payment that may include the amount is in progress. The dispute is resolved after it. Any"
            f" credited part of {amount} is then added to your balance{_refund_note(invoice)}."
        )
    if not over:
        return (
            f"{amount} is not collected until the dispute is resolved, and no payment of the invoice starts"
            " automatically. Credited amounts reduce the amount due."
        )
    if over == minor:
        return (
            f"{amount} is already paid. Credited amounts are added to your balance{_refund_note(invoice)}. Amounts paid"
            " by credits are returned to them."
        )
    return (
        f"{Money(minor - over, invoice.currency)} of {amount} is not collected until the dispute is resolved. The rest"
        " is already paid. Credited amounts reduce the amount due first; the rest is added to your balance."
    )


def _refund_note(invoice: Invoice) -> str:
    """Return a hint that the amount can be refunded to the card, if it can."""
    gateway = payments.gateway()
    taken = invoice.payments.exclude(status=PaymentStatus.DECLINED)
    return REFUND_NOTE if gateway and taken.filter(gateway=gateway.name).exists() else ""


def describe_credit(note: CreditNote) -> str:
    """Describe where the money of a credit note went."""
    parts = (
        (note.reduced_due, "was deducted from the amount due"),
        (note.to_balance, "was added to your balance"),
        (note.to_grants, "was returned to credits"),
    )
    parts_in_words = [f"{Money(minor, note.currency)} {where}" for minor, where in parts if minor]
    return f"{', '.join(parts_in_words)}."
