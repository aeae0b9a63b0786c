"""Opaque, prefixed, time-ordered identifiers, and the product's only source of secrets."""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from ports import clock

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
BODY = 26
STEP = 64  # bits between two ids of one millisecond: what is made together sorts as it was made


PAIRS = [first + second for first in CROCKFORD for second in CROCKFORD]


def _encode(number: int, length: int) -> str:
    letters = []
    for _ in range(0, length, 2):  # two letters at a time: every request makes several ids
        number, rest = divmod(number, 1024)
        letters.append(PAIRS[rest])
    return "".join(reversed(letters))[-length:]


_lock = Lock()
_last = 0


def _ulid() -> str:
    """Return a number that is greater than the last of this process in the same millisecond, and no easier to guess."""
    global _last
    moment = clock.milliseconds()
    with _lock:
        if _last >> 80 == moment:
            _last += 1 + secrets.randbits(STEP)
        else:  # half of a millisecond's numbers are left for those to come: 32,000 of them at least
            _last = (moment << 80) | secrets.randbits(79)
        return _encode(_last, BODY)


_source: Callable[[], str] = _ulid


def new(prefix: str) -> str:
    """Return a new id such as lse_01j9…: 26 lower-case Crockford letters, the first ten a millisecond clock."""
    return f"{prefix}_{_source()}"


def secret(letters: int = 40) -> str:
    """Return that many unguessable letters, five bits each."""
    return _encode(secrets.randbits(letters * 5), letters)


@contextmanager
def counted(seed: str) -> Iterator[None]:
    """Give out the same ids in the same order for the same seed, until the block ends."""
    global _source

    def numbered() -> Iterator[str]:
        number = 0
        while True:
            digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
            yield _encode((number << 80) | int.from_bytes(digest[:10], "big"), BODY)
            number += 1

    before, stream = _source, numbered()
    _source = lambda: next(stream)  # noqa: E731
    try:
        yield
    finally:
        _source = before
