"""How much of a payment can go back to its card: what was taken and is still with us, given back, and not used up."""

from dataclasses import dataclass

from billing.domain.money import shown


class TooMuch(ValueError):
    """More was to be sent back than can be, or nothing at all."""


@dataclass(frozen=True, slots=True)
class Room:
    """Minor units of one currency."""

    took: int  # by the payment
    back: int  # of it went back already, or is on its way
    credited: int  # of its invoice was given back to the tenant's balance
    balance: int  # of that is still there, and not spoken for
    currency: str

    @property
    def most(self) -> int:
        return max(min(self.took - self.back, self.credited - self.back, self.balance), 0)


def judge(room: Room, minor: int) -> None:
    """Raise TooMuch for an amount that cannot go back, and say what keeps it."""

    def money(minor: int) -> str:
        return shown(max(minor, 0), room.currency)

    if minor < 1:
        raise TooMuch("Nothing would go back.")
    if minor > room.took - room.back:
        raise TooMuch(
            f"The payment took {money(room.took)}, of which {money(room.back)} went back:"
            f" {money(room.took - room.back)} is left."
        )
    if minor > room.credited - room.back:
        raise TooMuch(
            f"Of the invoice {money(room.credited)} was given back to the balance, and {money(room.back)} of that went"
            " back to the card. Give back what it should not have charged first."
        )
    if minor > room.balance:
        raise TooMuch(
            f"Of the tenant's balance {money(room.balance)} is free; the rest is used or spoken for."
        )
