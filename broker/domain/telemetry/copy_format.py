"""PostgreSQL's binary COPY format, for rows of integers and times.

A row is its number of fields, then per field its length in bytes and its value; -1 is the length of NULL. Rows with
the same unknown fields have the same form, so one `struct` packs all of them.
Source: PostgreSQL documentation, COPY, "Binary Format".
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import repeat
from struct import Struct

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
SMALLINT, INTEGER, BIGINT, TIMESTAMP = "h", "i", "q", "q"
SIZES = {"h": 2, "i": 4, "q": 8}


def microseconds(at: datetime) -> int:
    """Return a time as PostgreSQL stores it: microseconds since 2000."""
    since = at - POSTGRES_EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def encode_rows(codes: str, columns: Sequence[Sequence[int] | None]) -> bytes:
    """Encode rows given by columns; a column of None is NULL.

    `codes` has one letter per column: h, i or q.
    """
    known = tuple(column is not None for column in columns)
    form = _row_form(codes, known)
    values: list[Iterable[int]] = [repeat(len(codes))]
    for code, column in zip(codes, columns, strict=True):
        values += [repeat(-1)] if column is None else [repeat(SIZES[code]), column]
    return b"".join(map(form, *values))


@cache
def _row_form(codes: str, known: tuple[bool, ...]) -> Callable[..., bytes]:
    """Return what packs a row with these columns known."""
    fields = "".join(f"i{code}" if has else "i" for code, has in zip(codes, known, strict=True))
    return Struct(f"!h{fields}").pack
