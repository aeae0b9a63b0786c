"""Limit of a refund to a payment card: collected, not yet refunded, credited, and unspent."""

from dataclasses import dataclass

from billing.domain.money import format_minor


class RefundTooLarge(ValueError):
    """The refund is larger than possible, or zero."""


@dataclass(frozen=True, slots=True)
class RefundLimits:
    """What limits a refund, in minor units of one currency."""

    took: int  # collected by the payment
    back: int  # of it, refunded already or pending
    credited: int  # of its invoice, credited to the tenant's balance
    balance: int  # of that, still there and not reserved
    currency: str

    @property
    def max_minor(self) -> int:
        return max(min(self.took - self.back, self.credited - self.back, self.balance), 0)


def check_refund(room: RefundLimits, minor: int) -> None:
    """Raise RefundTooLarge, with the reason, for an amount that cannot be refunded."""

    def money(minor: int) -> str:
        return format_minor(max(minor, 0), room.currency)

    if minor < 1:
        raise RefundTooLarge("The refund amount is zero.")
    if minor > room.took - room.back:
        raise RefundTooLarge(
            f"The payment charged {money(room.took)}, of which {money(room.back)} was refunded:"
            f" {money(room.took - room.back)} is left."
        )
    if minor > room.credited - room.back:
        raise RefundTooLarge(
            f"Of the invoice {money(room.credited)} was given back to the balance, and {money(room.back)} of that went"
            " back to the card. Give back what it should not have charged first."
        )
    if minor > room.balance:
        raise RefundTooLarge(
            f"{money(room.balance)} of the tenant's balance is available; the rest is used or reserved."
        )
