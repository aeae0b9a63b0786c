"""Opaque, prefixed, time-ordered identifiers, and random secrets."""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Lock

from ports import clock

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
BODY_LENGTH = 26
STEP_BITS = 64  # random bits between two ids of one millisecond, which sort by creation


LETTER_PAIRS = [first + second for first in CROCKFORD for second in CROCKFORD]


def _encode(number: int, length: int) -> str:
    letters = []
    for _ in range(0, length, 2):  # two letters at a time: every request makes several ids
        number, rest = divmod(number, 1024)
        letters.append(LETTER_PAIRS[rest])
    return "".join(reversed(letters))[-length:]


_lock = Lock()
_last = 0


def _ulid() -> str:
    """Return a new ULID, greater than this process's previous one, and unguessable."""
    global _last
    moment = clock.milliseconds()
    with _lock:
        if _last >> 80 == moment:
            _last += 1 + secrets.randbits(STEP_BITS)
        else:  # the upper half stays free for later ids of the millisecond: at least 32,000
            _last = (moment << 80) | secrets.randbits(79)
        return _encode(_last, BODY_LENGTH)


_source: Callable[[], str] = _ulid


def new(prefix: str) -> str:
    """Return a new id such as lse_01j9….

    It has 26 lower-case Crockford letters, the first ten of which are a millisecond clock.
    """
    return f"{prefix}_{_source()}"


def first_at(prefix: str, at: datetime) -> str:
    """Return the least id of a moment, to find rows by their time."""
    return f"{prefix}_{_encode(int(at.timestamp() * 1000) << 80, BODY_LENGTH)}"


def random_token(length: int = 40) -> str:
    """Return a random secret of this many letters, five bits each."""
    return _encode(secrets.randbits(length * 5), length)


@contextmanager
def reproducible_ids(seed: str) -> Iterator[None]:
    """Generate reproducible ids from a seed until the block ends."""
    global _source

    def numbered() -> Iterator[str]:
        number = 0
        while True:
            digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
            yield _encode((number << 80) | int.from_bytes(digest[:10], "big"), BODY_LENGTH)
            number += 1

    before, stream = _source, numbered()
    _source = lambda: next(stream)  # noqa: E731
    try:
        yield
    finally:
        _source = before
