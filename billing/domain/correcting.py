"""Corrections of what was charged: which stretches stand charged now, and what of them changes by how much.

A moment of a lease is charged at most once, so that stretches of one lease never overlap. Amounts are exact.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from billing.domain.pricing import cost

Window = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a lease: what it is charged as, or what a correction adds to that."""

    lease: str
    seq: int
    version: int
    period: int  # its seconds fell into
    billed: int  # its amount stands on
    project: str
    offering: str
    start: datetime
    end: datetime
    quantity: int
    nano: int  # an hour, for one
    final: bool = False  # it stands on an invoice that never changes
    unit_seconds: int = 0
    exact: int = 0

    @property
    def seconds(self) -> int:
        return int((self.end - self.start).total_seconds())

    def cut(self, window: Window) -> "Piece | None":
        """Return what of it lies in a window, or None."""
        start, end = max(self.start, window[0]), min(self.end, window[1])
        return replace(self, start=start, end=end) if start < end else None

    def without(self, window: Window) -> "Iterator[Piece]":
        """Yield what of it lies outside of a window."""
        if self.start < (end := min(self.end, window[0])):
            yield replace(self, end=end)
        if (start := max(self.start, window[1])) < self.end:
            yield replace(self, start=start)


@dataclass(frozen=True, slots=True)
class Rerated:
    """What a price version should have cost in a stretch of time; the one that was booked later counts."""

    version: int
    window: Window
    nano: int


def standing(charged: Iterable[Piece], changes: Iterable[tuple[Piece, bool]]) -> list[Piece]:
    """Return what stands charged after earlier corrections, in their order: each takes away (False) or adds (True)."""
    found = list(charged)
    for piece, added in changes:
        window = piece.start, piece.end
        found = [
            left for each in found for left in ([each] if each.lease != piece.lease else each.without(window))
        ]
        if added:
            found.append(piece)
    return sorted(found, key=lambda each: (each.lease, each.start))


def at_prices(pieces: Iterable[Piece], rerated: Sequence[Rerated]) -> list[Piece]:
    """Cut pieces where their price was corrected, each with what it costs now."""
    found = list(pieces)
    for one in rerated:
        found = [
            part
            for each in found
            for part in ([each] if each.version != one.version else _repriced(each, one))
        ]
    return sorted(found, key=lambda each: (each.lease, each.start))


def _repriced(piece: Piece, one: Rerated) -> Iterator[Piece]:
    yield from piece.without(one.window)
    if inside := piece.cut(one.window):
        yield replace(inside, nano=one.nano)


def given_back(pieces: Iterable[Piece], window: Window) -> list[Piece]:
    """Return what takes the window's seconds off again: never more than stands charged."""
    return [_sized(cut, -1) for each in pieces if (cut := each.cut(window))]


def added(pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces as charges of their own."""
    return [_sized(each, 1) for each in pieces]


def repriced(pieces: Iterable[Piece], one: Rerated) -> list[Piece]:
    """Return what the window's seconds of a version would cost more or less; what stays the same is left out."""
    cuts = [cut for each in pieces if each.version == one.version and (cut := each.cut(one.window))]
    deltas = (replace(cut, exact=_cost(cut, one.nano) - _cost(cut, cut.nano), unit_seconds=0) for cut in cuts)
    return [each for each in deltas if each.exact]


def free(pieces: Iterable[Piece], window: Window) -> list[Window]:
    """Return the parts of a window in which nothing stands charged, in order."""
    found, at = list[Window](), window[0]
    for each in sorted(pieces, key=lambda piece: piece.start):
        if each.end <= at or each.start >= window[1]:
            continue
        if at < each.start:
            found.append((at, each.start))
        at = each.end
    return [*found, (at, window[1])] if at < window[1] else found


def _sized(piece: Piece, sign: int) -> Piece:
    seconds = sign * piece.seconds * piece.quantity
    return replace(piece, unit_seconds=seconds, exact=sign * _cost(piece, piece.nano))


def _cost(piece: Piece, nano: int) -> int:
    return cost(piece.seconds, quantity=piece.quantity, nano_per_hour=nano)


@dataclass(frozen=True, slots=True)
class Change:
    """What one line changes by: a line of a final invoice by a credit note, one of an open month by charges."""

    invoice: str  # its id; empty where its month has no draft yet
    number: str  # empty of a draft
    month: str
    line: int  # its number; 0 where there is none yet
    project: str
    offering: str
    version: int
    leases: int
    unit_seconds: int
    exact: int
    before: int  # minor units, before tax
    after: int
    tax: int  # that goes with it; of a draft it is worked out when the month is closed
    final: bool

    @property
    def minor(self) -> int:
        return self.after - self.before

    def told(self) -> dict[str, Any]:
        """Return it as plain JSON, amounts that may be long as text."""
        return {name: getattr(self, name) for name in self.__slots__} | {"exact": str(self.exact)}


def seal(changes: Iterable[Change]) -> str:
    """Return what changes when anything that would be booked does.

    What else stands on a line of an open month may grow meanwhile; what the correction adds to it may not change.
    """
    booked = [
        (each.invoice if each.final else each.month, each.project, each.offering, each.version, each.unit_seconds,
         str(each.exact), each.minor if each.final else 0, each.tax if each.final else 0)
        for each in changes
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(sorted(booked)).encode()).hexdigest()
