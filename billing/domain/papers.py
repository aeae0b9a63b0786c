"""Papers as plain words: what an invoice, a credit note or a statement says, before it is laid out on pages.

Everything is text as people read it, amounts too, so that whoever lays it out adds nothing and changes nothing.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from billing.domain.money import SYMBOLS, exponent_of, fixed_point

NANO_DIGITS = 9
SECOND = timedelta(seconds=1)
Kind = Literal["n", "when", "what", "num"]


@dataclass(frozen=True, slots=True)
class Party:
    """Who charges or who is charged: a name, and what stands below it (address, VAT number), line by line."""

    name: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `n` counts, `when` is a day, `what` takes the room that is left, `num` are figures."""

    head: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Named:
    """A cell of two lines: what it is, and quieter what else is known of it."""

    text: str
    sub: str


Cell = str | Named


@dataclass(frozen=True, slots=True)
class Group:
    """Rows under one name, such as a project, and what they come to; without a name they just stand there."""

    name: str
    amount: str
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """A line below the table; a `strong` one is what those above it come to."""

    label: str
    amount: str
    kind: Literal["plain", "strong"] = "plain"


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph at the end, and what is to be typed, if anything."""

    title: str
    text: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """The figure people came for, and what it is."""

    amount: str
    words: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Paper:
    """All that a paper says, in the order in which it is read."""

    title: str
    number: str
    supplier: Party
    to: str
    customer: Party
    facts: tuple[tuple[str, str], ...]
    headline: Headline
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    sums: tuple[Sum, ...]
    notes: tuple[Note, ...]
    foot: str
    reason: str = ""
    draft: bool = False

    def text(self) -> str:
        """Return it as JSON, the same text for the same paper in every process."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()


def grouped(rows: Iterable[tuple[str, Sequence[Cell], int]]) -> list[tuple[str, list[tuple[Cell, ...]], int]]:
    """Gather rows by their name, in the order in which names first come, each with the sum of its amounts."""
    found: dict[str, tuple[list[tuple[Cell, ...]], int]] = {}
    for name, cells, minor in rows:
        kept, total = found.get(name, ([], 0))
        kept.append(tuple(cells))
        found[name] = kept, total + minor
    return [(name, kept, total) for name, (kept, total) in found.items()]


def rate(nano_per_hour: int, currency: str) -> str:
    """Write a price with every digit that counts, for whoever multiplies it: €1.34, €0.2375, ¥180."""
    digits = fixed_point(nano_per_hour, NANO_DIGITS, thousands=",").rstrip("0")
    whole, _, parts = digits.partition(".")
    parts = parts.ljust(exponent_of(currency), "0")
    symbol = SYMBOLS.get(currency, f"{currency}\u00a0")
    return f"{symbol}{whole}.{parts}" if parts else f"{symbol}{whole}"


def per_cent(basis_points: int) -> str:
    """Write a rate of tax: 19 %, 5.5 %."""
    digits = fixed_point(basis_points, 2)
    return f"{digits.rstrip('0').rstrip('.')} %"


def day(at: datetime, zone: ZoneInfo) -> str:
    """Write the day a moment is on in a time zone: 1 November 2026."""
    here = at.astimezone(zone)
    return f"{here.day} {here:%B %Y}"


def short_day(at: datetime, zone: ZoneInfo) -> str:
    """Write it where there is little room: 1 Nov 2026."""
    here = at.astimezone(zone)
    return f"{here.day} {here:%b %Y}"


def stretch(start: datetime, end: datetime, zone: ZoneInfo) -> str:
    """Write the days from a border up to, and not with, another: 1 – 31 October 2026."""
    first, last = start.astimezone(zone), (end - SECOND).astimezone(zone)
    if (first.year, first.month) == (last.year, last.month):
        same = f"{first.day} – " if first.day != last.day else ""
        return f"{same}{last.day} {last:%B %Y}"
    year = "" if first.year == last.year else f" {first.year}"
    return f"{first.day} {first:%B}{year} – {last.day} {last:%B %Y}"
