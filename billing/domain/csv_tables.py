"""CSV tables (RFC 4180), streamed and safe to open in a spreadsheet."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # full width too
NUMBER = re.compile(r"[+-]?[0-9.,]+")
CHUNK_LENGTH = 64_000  # characters per chunk


def escape_formula(value: object) -> object:
    """Return a cell's value, neutralised if a spreadsheet would run it as a formula.

    Such text gets an apostrophe in front.
    """
    if isinstance(value, str) and value.startswith(FORMULA_PREFIXES) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def render_csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the CSV text in chunks, reading no more rows than a chunk needs."""
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(heads)
    for row in rows:
        writer.writerow([escape_formula(cell) for cell in row])
        if text.tell() > CHUNK_LENGTH:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()
