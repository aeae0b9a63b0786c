"""Giving back what an invoice charged: line by line, in whole coins, and never more than a line came to.

Amounts are minor units of the invoice's currency, before tax. A line is rounded once, when it is made; whatever is
given back of it in whole coins, in whichever order, therefore comes to exactly the line and never to a coin more. The
tax on a line goes back with it, counted over all that was given back so far: in the end it comes to just that tax too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from billing.domain.money import shown
from billing.domain.tax import given_back


class TooMuch(ValueError):
    """More was to be given back of a line than is left of it, or of a line that there is not, or nothing at all."""


@dataclass(frozen=True, slots=True)
class Left:
    """A line, what it came to, and what of it was given back already; the same of the tax on it."""

    n: int
    minor: int
    credited: int
    tax: int = 0
    tax_credited: int = 0

    @property
    def left(self) -> int:
        return max(self.minor - self.credited, 0)

    def tax_with(self, minor: int) -> int:
        """Return the tax that goes back when so much more of the line does."""
        return given_back(self.tax, of=self.minor, credited=self.credited + minor) - self.tax_credited


def everything(lines: Iterable[Left]) -> dict[int, int]:
    """Return all that is left of every line, by its number; what has nothing left is not in it."""
    return {line.n: line.left for line in lines if line.left}


def judge(lines: Iterable[Left], wanted: Mapping[int, int], currency: str) -> int:
    """Return what the wanted amounts, by number of line, come to together, or raise TooMuch."""
    left = {line.n: line.left for line in lines}
    if not wanted:
        raise TooMuch("Nothing is left of it to give back.")
    for n, minor in wanted.items():
        if n not in left:
            raise TooMuch(f"It has no line {n}.")
        if minor < 1:
            raise TooMuch(f"Of line {n} nothing would be given back.")
        if minor > left[n]:
            raise TooMuch(f"Of line {n} no more than {shown(left[n], currency)} can be given back.")
    return sum(wanted.values())


def off_due(total: int, *, due: int) -> int:
    """Return how much of a credit lowers what is due; the rest was paid, and is owed to whoever paid it."""
    return min(total, max(due, 0))


def to_grants(over: int, *, paid: int, back: int) -> int:
    """Return how much of what is given back beyond what is due goes to grants: what no money that was paid covers.

    `paid` is what money ever paid of the invoice, `back` what of that went back before.
    """
    return over - min(over, max(paid - back, 0))
