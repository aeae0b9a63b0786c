"""What is left on one node for those who share its cards: processors, memory, a part of every card."""

from dataclasses import dataclass
from typing import NamedTuple

WHOLE = 1000  # thousandths of one card


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks of one node: thousandths of a processor, MiB, cards, thousandths of each card.

    Part of a card is asked for on one card only, several cards only whole; no card at all is a request too.
    """

    cpu: int
    memory: int
    cards: int
    share: int

    def __post_init__(self) -> None:
        if min(self.cpu, self.memory, self.cards, self.share) < 0:
            raise ValueError(f"{self} asks for less than nothing")
        if self.share > WHOLE or (self.cards == 0) != (self.share == 0):
            raise ValueError(f"{self} asks for {self.share} thousandths of each of {self.cards} cards")
        if self.cards > 1 and self.share != WHOLE:
            raise ValueError(f"{self} asks for part of several cards; ask for each by itself")

    @property
    def partial(self) -> bool:
        return 0 < self.share < WHOLE

    @property
    def takes(self) -> int:
        """Return the thousandths of cards it takes in all."""
        return self.cards * self.share


class Held(NamedTuple):
    """Where a request is held."""

    node: int
    cards: tuple[int, ...]


class Room:
    """One node: what is free of it, and of each of its cards."""

    __slots__ = ("cpu", "free", "left", "memory", "rank", "whole")

    def __init__(self, *, cpu: int, memory: int, cards: int, rank: float = 0.0) -> None:
        self.cpu, self.memory = cpu, memory
        self.left = [WHOLE] * cards
        self.free, self.whole = WHOLE * cards, cards  # thousandths free in all; cards that nobody uses
        self.rank = rank  # from 0 to 1: in which order nodes are filled where nothing else decides

    def fits(self, request: Request) -> bool:
        """Tell whether the request may be held here."""
        if request.cpu > self.cpu or request.memory > self.memory:
            return False
        if request.partial:
            return max(self.left, default=0) >= request.share
        return self.whole >= request.cards

    def wholes(self, count: int) -> tuple[int, ...]:
        """Return that many cards that nobody uses, or all there are."""
        return tuple(card for card, left in enumerate(self.left) if left == WHOLE)[:count]

    def take(self, request: Request, cards: tuple[int, ...]) -> None:
        """Hold a request on these cards; raises ValueError where it does not fit."""
        if request.cpu > self.cpu or request.memory > self.memory or len(cards) != request.cards:
            raise ValueError(f"{request} does not fit beside what the node holds")
        if any(self.left[card] < request.share for card in cards):
            raise ValueError(f"{request} does not fit on cards {cards}, on which {self.left} is left")
        self._change(request, cards, -1)

    def give(self, request: Request, cards: tuple[int, ...]) -> None:
        """Let go of a request; raises ValueError where cards hold less than it took."""
        if any(self.left[card] + request.share > WHOLE for card in cards):
            raise ValueError(f"{request} is not held on cards {cards}, on which {self.left} is left")
        self._change(request, cards, 1)

    def _change(self, request: Request, cards: tuple[int, ...], sign: int) -> None:
        self.cpu += sign * request.cpu
        self.memory += sign * request.memory
        self.free += sign * request.share * len(cards)
        for card in cards:
            self.whole -= self.left[card] == WHOLE
            self.left[card] += sign * request.share
            self.whole += self.left[card] == WHOLE
