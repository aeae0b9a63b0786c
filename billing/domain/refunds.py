"""Limit of a refund to a payment card: collected, not yet refunded, credited, and unspent."""

from dataclasses import dataclass

from billing.domain.money import format_minor


class RefundTooLarge(ValueError):
    """The refund is larger than possible, or zero."""


@dataclass(frozen=True, slots=True)
class RefundLimits:
    """Amounts that limit a refund, in minor units of one currency."""

    collected: int  # by the payment
    refunded: int  # of it, including pending refunds
    credited: int  # of its invoice, credited to the tenant's balance
    balance: int  # of that, still there and not reserved
    currency: str

    @property
    def max_minor(self) -> int:
        return max(min(self.collected - self.refunded, self.credited - self.refunded, self.balance), 0)


def check_refund(limits: RefundLimits, minor: int) -> None:
    """Raise RefundTooLarge, with the reason, for an amount that cannot be refunded."""

    def money(minor: int) -> str:
        return format_minor(max(minor, 0), limits.currency)

    if minor < 1:
        raise RefundTooLarge("The refund amount is zero.")
    if minor > limits.collected - limits.refunded:
        raise RefundTooLarge(
            f"The payment charged {money(limits.collected)}, of which {money(limits.refunded)} was refunded:"
            f" {money(limits.collected - limits.refunded)} is left."
        )
    if minor > limits.credited - limits.refunded:
        raise RefundTooLarge(
            f"Of the invoice {money(limits.credited)} was given back to the balance, and {money(limits.refunded)}"
            " of that went back to the payment card. Give back what it should not have charged first."
        )
    if minor > limits.balance:
        raise RefundTooLarge(
            f"{money(limits.balance)} of the tenant's balance is available; the rest is used or reserved."
        )
