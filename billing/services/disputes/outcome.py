"""What becomes of the money of a disputed line, in words: before it is answered, and once it was given back."""

from billing.domain.money import Money
from billing.models import CreditNote, Invoice, PaymentStatus
from billing.models.moves import UNSETTLED
from ports import payments

CARD = ", and can be sent back to your card from there"


def under_way(invoice: Invoice) -> bool:
    """Tell whether a payment of it may have taken the money, and nobody knows yet."""
    return invoice.payments.filter(status__in=UNSETTLED).exists()


def hint(invoice: Invoice, *, paying: bool) -> str:
    """Say to whoever is about to dispute a line what happens then."""
    if paying:
        return (
            "Your operator reads it and answers once the payment that is under way has settled; what is given back"
            " goes to your balance."
        )
    if invoice.due <= 0:
        return "Your operator reads it and answers. The invoice is paid: what is given back goes to your balance."
    return (
        "Your operator reads it and answers. Until then nobody goes after the amount, and no payment of the invoice"
        " begins by itself."
    )


def awaited(invoice: Invoice, minor: int, *, paying: bool) -> str:
    """Say what happens meanwhile to so much of an invoice that is in question, with tax."""
    amount, over = Money(minor, invoice.currency), minor - min(minor, max(invoice.due, 0))
    if paying:
        return (
            "A payment that may take all of it is under way. It is answered after that; what is given back of"
            f" {amount} then goes to your balance{_card(invoice)}."
        )
    if not over:
        return (
            f"Nobody goes after {amount} until it is answered, and no payment of the invoice begins by itself. What is"
            " given back comes off what is due."
        )
    if over == minor:
        return (
            f"{amount} is paid already. What is given back goes to your balance{_card(invoice)}; what credit paid is"
            " credit again."
        )
    return (
        f"Nobody goes after {Money(minor - over, invoice.currency)} of {amount} until it is answered; the rest is paid"
        " already. What is given back comes off what is due first, and the rest goes to your balance."
    )


def _card(invoice: Invoice) -> str:
    """Say that it can go on to the card, where whoever collects here took it, or is about to."""
    gateway = payments.gateway()
    taken = invoice.payments.exclude(status=PaymentStatus.DECLINED)
    return CARD if gateway and taken.filter(gateway=gateway.name).exists() else ""


def given(note: CreditNote) -> str:
    """Say where the money of a credit note went."""
    parts = (
        (note.off_due, "came off what was due"),
        (note.to_balance, "went to your balance"),
        (note.to_grants, "is credit again"),
    )
    told = [f"{Money(minor, note.currency)} {where}" for minor, where in parts if minor]
    return f"{', '.join(told)}."
