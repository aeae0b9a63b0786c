"""Limits of credit notes: whole minor units per line, never more than the line charged.

Amounts are minor units of the invoice's currency, before tax. A line is rounded once, when it is made.
Credits are whole minor units, so in any order they add up to exactly the line and never more. The tax is
credited with it, computed over everything credited so far, so in the end it is exactly the tax of the
line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from billing.domain.money import format_minor
from billing.domain.tax import credited_tax


class CreditTooLarge(ValueError):
    """The credit exceeds what a line has left, names an unknown line, or is empty."""


@dataclass(frozen=True, slots=True)
class LineCreditLimit:
    """An invoice line with what was charged and already credited, before tax and tax."""

    n: int
    minor: int
    credited: int
    tax: int = 0
    tax_credited: int = 0

    @property
    def remaining(self) -> int:
        return max(self.minor - self.credited, 0)

    def tax_with(self, minor: int) -> int:
        """Return the tax that is credited together with this much more of the line."""
        return credited_tax(self.tax, of=self.minor, credited=self.credited + minor) - self.tax_credited


def remaining_amounts(lines: Iterable[LineCreditLimit]) -> dict[int, int]:
    """Return what is left of every line by its number, leaving out fully credited lines."""
    return {line.n: line.remaining for line in lines if line.remaining}


def check_credit(lines: Iterable[LineCreditLimit], wanted: Mapping[int, int], currency: str) -> int:
    """Return the sum of the requested credits by line number, or raise CreditTooLarge."""
    left = {line.n: line.remaining for line in lines}
    if not wanted:
        raise CreditTooLarge("Nothing is left to credit.")
    for n, minor in wanted.items():
        if n not in left:
            raise CreditTooLarge(f"The invoice has no line {n}.")
        if minor < 1:
            raise CreditTooLarge(f"The credit for line {n} is zero.")
        if minor > left[n]:
            raise CreditTooLarge(f"At most {format_minor(left[n], currency)} of line {n} can be credited.")
    return sum(wanted.values())


def credit_applied_to_due(total: int, *, due: int) -> int:
    """Return how much of a credit lowers the amount due.

    The rest was already paid and is owed to the payer.
    """
    return min(total, max(due, 0))


def credit_returned_to_grants(over: int, *, paid: int, back: int) -> int:
    """Return the part of a credit beyond the due amount that goes back to grants.

    That is the part which no payment covers. `paid` is all money ever paid for the invoice, `back` what
    of it was returned before.
    """
    return over - min(over, max(paid - back, 0))
