"""Corrections of charges: what is charged now, and by how much each part changes.

A moment of a lease is charged at most once, so intervals of one lease never overlap. Amounts are exact.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from billing.domain.pricing import usage_cost

Window = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class ChargedInterval:
    """A charged interval of a lease, or what a correction adds to it."""

    lease: str
    seq: int
    version: int
    period: int  # the month that its seconds fall into
    billed: int  # the month whose invoice carries its amount
    project: str
    offering: str
    start: datetime
    end: datetime
    quantity: int
    nano: int  # per unit-hour
    final: bool = False  # it is on a final invoice
    unit_seconds: int = 0
    exact: int = 0

    @property
    def seconds(self) -> int:
        return int((self.end - self.start).total_seconds())

    def cut(self, window: Window) -> "ChargedInterval | None":
        """Return the part inside a window, or None."""
        start, end = max(self.start, window[0]), min(self.end, window[1])
        return replace(self, start=start, end=end) if start < end else None

    def without(self, window: Window) -> "Iterator[ChargedInterval]":
        """Yield the parts outside a window."""
        if self.start < (end := min(self.end, window[0])):
            yield replace(self, end=end)
        if (start := max(self.start, window[1])) < self.end:
            yield replace(self, start=start)


@dataclass(frozen=True, slots=True)
class PriceCorrection:
    """The price that a price version should have had in a window.

    Where two corrections of one version overlap, the one booked later counts.
    """

    version: int
    window: Window
    nano: int


def apply_corrections(
    charged: Iterable[ChargedInterval], changes: Iterable[tuple[ChargedInterval, bool]]
) -> list[ChargedInterval]:
    """Return what is charged after earlier corrections are applied in order.

    Each change either removes its interval from the charges (False) or adds it (True).
    """
    found = list(charged)
    for piece, added in changes:
        window = piece.start, piece.end
        found = [left for each in found for left in ([each] if each.lease != piece.lease else each.without(window))]
        if added:
            found.append(piece)
    return sorted(found, key=lambda each: (each.lease, each.start))


def apply_price_corrections(
    pieces: Iterable[ChargedInterval], rerated: Sequence[PriceCorrection]
) -> list[ChargedInterval]:
    """Split charged intervals where their price was corrected, each with its corrected price."""
    found = list(pieces)
    for one in rerated:
        found = [
            part
            for each in found
            for part in ([each] if each.version != one.version else _split_at_correction(each, one))
        ]
    return sorted(found, key=lambda each: (each.lease, each.start))


def _split_at_correction(piece: ChargedInterval, one: PriceCorrection) -> Iterator[ChargedInterval]:
    yield from piece.without(one.window)
    if inside := piece.cut(one.window):
        yield replace(inside, nano=one.nano)


def reversed_charges(pieces: Iterable[ChargedInterval], window: Window) -> list[ChargedInterval]:
    """Return negative charges that cancel everything charged inside a window."""
    return [_with_amount(cut, -1) for each in pieces if (cut := each.cut(window))]


def additional_charges(pieces: Iterable[ChargedInterval]) -> list[ChargedInterval]:
    """Return the intervals as positive charges with their amounts."""
    return [_with_amount(each, 1) for each in pieces]


def price_differences(pieces: Iterable[ChargedInterval], one: PriceCorrection) -> list[ChargedInterval]:
    """Return the price difference for each part of a version inside the corrected window.

    Parts whose amount does not change are left out.
    """
    cuts = [cut for each in pieces if each.version == one.version and (cut := each.cut(one.window))]
    deltas = (replace(cut, exact=_cost(cut, one.nano) - _cost(cut, cut.nano), unit_seconds=0) for cut in cuts)
    return [each for each in deltas if each.exact]


def uncharged_windows(pieces: Iterable[ChargedInterval], window: Window) -> list[Window]:
    """Return the parts of a window in which nothing is charged, in order."""
    found, at = list[Window](), window[0]
    for each in sorted(pieces, key=lambda piece: piece.start):
        if each.end <= at or each.start >= window[1]:
            continue
        if at < each.start:
            found.append((at, each.start))
        at = each.end
    return [*found, (at, window[1])] if at < window[1] else found


def _with_amount(piece: ChargedInterval, sign: int) -> ChargedInterval:
    seconds = sign * piece.seconds * piece.quantity
    return replace(piece, unit_seconds=seconds, exact=sign * _cost(piece, piece.nano))


def _cost(piece: ChargedInterval, nano: int) -> int:
    return usage_cost(piece.seconds, quantity=piece.quantity, nano_per_hour=nano)


@dataclass(frozen=True, slots=True)
class LineChange:
    """The change of one invoice line.

    A line of a final invoice changes by a credit note, one of an open month by additional charges.
    """

    invoice: str  # its id; empty where its month has no draft yet
    number: str  # empty for a draft
    month: str
    line: int  # its number; 0 if it does not exist yet
    project: str
    offering: str
    version: int
    leases: int
    unit_seconds: int
    exact: int
    before: int  # minor units, before tax
    after: int
    tax: int  # that changes with it; a draft's is computed when the month is closed
    final: bool

    @property
    def minor(self) -> int:
        return self.after - self.before

    def as_json(self) -> dict[str, Any]:
        """Return the change as plain JSON, with amounts that may be long as text."""
        return {name: getattr(self, name) for name in self.__slots__} | {"exact": str(self.exact)}


def fingerprint_changes(changes: Iterable[LineChange]) -> str:
    """Return a fingerprint that differs whenever a booked amount differs.

    A line of an open month may keep growing meanwhile; only what the correction adds to it is part of
    the fingerprint.
    """
    booked = [
        (each.invoice if each.final else each.month, each.project, each.offering, each.version, each.unit_seconds,
         str(each.exact), each.minor if each.final else 0, each.tax if each.final else 0)
        for each in changes
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(sorted(booked)).encode()).hexdigest()
