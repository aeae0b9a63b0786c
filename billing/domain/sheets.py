"""Tables as CSV (RFC 4180), row by row, safe to open in a spreadsheet."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

FORMULA = ("=", "+", "-", "@", "\t", "\r")
NUMBER = re.compile(r"[+-]?[0-9.,]+")
AT_ONCE = 64_000  # characters that are gathered before they are handed on


def safe(value: object) -> object:
    """Return a cell's value; text that a spreadsheet would run as a formula gets an apostrophe."""
    if isinstance(value, str) and value.startswith(FORMULA) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def written(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the text of a table, a piece at a time, reading no more rows than a piece needs."""
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(heads)
    for row in rows:
        writer.writerow([safe(cell) for cell in row])
        if text.tell() > AT_ONCE:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()
