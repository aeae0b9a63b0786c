"""Retries of a batch command: how often, after how long, and how a run ended."""

import re
from datetime import timedelta

MAX_RETRIES = 10
FIRST_BACKOFF, MAX_BACKOFF = timedelta(seconds=30), timedelta(hours=1)
MAX_LOSSES = 10  # runs that the provider may lose before the lease ends
MIN_LEFT_S = 60  # of the lease's duration, else no run is worth starting
FINISHED = frozenset({"its command finished", "it ended as succeeded"})  # as provisioners say it
EXIT_CODE = re.compile(r"exit code (-?\d{1,4})", re.ASCII)


def backoff_after(failures: int) -> timedelta:
    """Return the wait after a failed run: doubled each time, an hour at most."""
    return min(FIRST_BACKOFF * (1 << min(failures - 1, MAX_RETRIES)), MAX_BACKOFF)


def parse_exit_code(text: str) -> int | None:
    """Return the exit code in a sentence about an ended program, or None."""
    if text in FINISHED:
        return 0
    found = EXIT_CODE.search(text)
    return int(found[1]) if found else None
