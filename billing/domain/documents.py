"""Content of invoices, credit notes and statements as plain text, before layout.

All values are text as people read it, amounts too; the layout adds and changes nothing.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from billing.domain.money import SYMBOLS, exponent_of, format_fixed_point

NANO_DIGITS = 9
SECOND = timedelta(seconds=1)
ColumnKind = Literal["n", "when", "what", "num"]


@dataclass(frozen=True, slots=True)
class DocumentParty:
    """The supplier or customer: a name, and the lines below it (address, VAT number)."""

    name: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentColumn:
    """A table column: `n` counts, `when` is a day, `num` are figures, `what` is text.

    `what` takes the width that is left.
    """

    head: str
    kind: ColumnKind


@dataclass(frozen=True, slots=True)
class TwoLineCell:
    """A cell of two lines: a title and, in smaller print, a detail."""

    text: str
    sub: str


DocumentCell = str | TwoLineCell


@dataclass(frozen=True, slots=True)
class DocumentGroup:
    """Rows under one heading, such as a project, with their sum.

    The heading may be empty.
    """

    name: str
    amount: str
    rows: tuple[tuple[DocumentCell, ...], ...]


@dataclass(frozen=True, slots=True)
class DocumentTotal:
    """A total line below the table; a `strong` one sums up those above."""

    label: str
    amount: str
    kind: Literal["plain", "strong"] = "plain"


@dataclass(frozen=True, slots=True)
class DocumentNote:
    """A closing paragraph, with an optional command or code to type."""

    title: str
    text: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class DocumentHeadline:
    """The main figure and its caption."""

    amount: str
    words: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """The whole content of a document, in reading order."""

    title: str
    number: str
    supplier: DocumentParty
    to: str
    customer: DocumentParty
    facts: tuple[tuple[str, str], ...]
    headline: DocumentHeadline
    columns: tuple[DocumentColumn, ...]
    groups: tuple[DocumentGroup, ...]
    sums: tuple[DocumentTotal, ...]
    notes: tuple[DocumentNote, ...]
    foot: str
    reason: str = ""
    draft: bool = False
    language: str = "en"
    # Words of the layout, such as `Page {page} of {pages}`, in the language of the document.
    labels: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """Return the document as JSON; the same document gives the same text in every process."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()


def group_rows(
    rows: Iterable[tuple[str, Sequence[DocumentCell], int]],
) -> list[tuple[str, list[tuple[DocumentCell, ...]], int]]:
    """Group rows by name, each group with the sum of its amounts.

    Groups are in the order in which their names first appear.
    """
    found: dict[str, tuple[list[tuple[DocumentCell, ...]], int]] = {}
    for name, cells, minor in rows:
        kept, total = found.get(name, ([], 0))
        kept.append(tuple(cells))
        found[name] = kept, total + minor
    return [(name, kept, total) for name, (kept, total) in found.items()]


def format_rate(nano_per_hour: int, currency: str) -> str:
    """Write a price with every significant digit: €1.34, €0.2375, ¥180."""
    digits = format_fixed_point(nano_per_hour, NANO_DIGITS, thousands=",").rstrip("0")
    whole, _, parts = digits.partition(".")
    parts = parts.ljust(exponent_of(currency), "0")
    symbol = SYMBOLS.get(currency, f"{currency}\u00a0")
    return f"{symbol}{whole}.{parts}" if parts else f"{symbol}{whole}"


def format_percent(basis_points: int) -> str:
    """Write a tax rate: 19 %, 5.5 %."""
    digits = format_fixed_point(basis_points, 2)
    return f"{digits.rstrip('0').rstrip('.')} %"


def format_day(at: datetime, zone: ZoneInfo) -> str:
    """Write the local day of a time: 1 November 2026."""
    here = at.astimezone(zone)
    return f"{here.day} {here:%B %Y}"


def format_short_day(at: datetime, zone: ZoneInfo) -> str:
    """Write the local day of a time in short form: 1 Nov 2026."""
    here = at.astimezone(zone)
    return f"{here.day} {here:%b %Y}"


def format_day_range(start: datetime, end: datetime, zone: ZoneInfo) -> str:
    """Write the days of the half-open range [start, end): 1 – 31 October 2026."""
    first, last = start.astimezone(zone), (end - SECOND).astimezone(zone)
    if (first.year, first.month) == (last.year, last.month):
        same = f"{first.day} – " if first.day != last.day else ""
        return f"{same}{last.day} {last:%B %Y}"
    year = "" if first.year == last.year else f" {first.year}"
    return f"{first.day} {first:%B}{year} – {last.day} {last:%B %Y}"
