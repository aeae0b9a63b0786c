"""Sort tests into tiers, and choose which of the deep ones run.

A test without a mark is fast. Deep ones are long: properties, oracles, and chaos, which kills processes. A commit runs
one slice of them; five commits in a row run all.
"""

import hashlib
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
SLICES = 5
Entry = TypeVar("Entry")
SLICE_WITHOUT_GIT = 0
FIFTH = "fifth"  # a parameter: which fifth of a long table a test goes through
SLOW = ("browser", "cluster", "deep", "chaos")


def sort(items: Iterable[pytest.Item]) -> None:
    """Mark unmarked tests as fast, and chaos tests as deep."""
    for item in items:
        if item.get_closest_marker("chaos"):
            item.add_marker("deep")
        if not any(item.get_closest_marker(name) for name in SLOW):
            item.add_marker("fast")


def left_out(items: list[pytest.Item], wanted: str) -> list[pytest.Item]:
    """Return the deep tests that `--deep=<wanted>` leaves out."""
    deep = [item for item in items if item.get_closest_marker("deep")]
    if wanted == "all" or (wanted == "none" and len(deep) == len(items)):
        return []
    if wanted == "none":
        return deep
    number = slice_of_commit() if wanted == "commit" else int(wanted)
    return [item for item in deep if slice_of(item) != number]


def slice_of(item: pytest.Item) -> int:
    """Return the slice of a test: by file for chaos, by number for `by_fifths`."""
    if hasattr(item, "callspec") and FIFTH in item.callspec.params:
        return int(item.callspec.params[FIFTH])
    by = item.nodeid.partition("::")[0] if item.get_closest_marker("chaos") else item.nodeid
    return int.from_bytes(hashlib.sha256(by.encode()).digest()[:8]) % SLICES


@cache
def slice_of_commit() -> int:
    """Return the slice that this commit runs: by how many commits came before it."""
    if _git("rev-parse", "--is-shallow-repository") == "true":  # which always counts as many
        return int(_git("rev-parse", "HEAD") or "0", 16) % SLICES
    return int(_git("rev-list", "--count", "HEAD") or SLICE_WITHOUT_GIT) % SLICES


def _git(*arguments: str) -> str:
    """Return the output of git; empty without git, repository or commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def by_fifths(test: Callable[..., None]) -> Callable[..., None]:
    """Make a test deep; each commit runs it on one fifth of its table."""
    return pytest.mark.deep(pytest.mark.parametrize(FIFTH, range(SLICES))(test))


def take_fifth(table: Iterable[Entry], fifth: int) -> list[Entry]:
    """Return every fifth entry of a table, from this one on."""
    return list(table)[fifth::SLICES]


def described(wanted: str) -> str:
    """Describe which deep tests a run left out."""
    if wanted == "all":
        return ""
    if wanted == "none":
        return "left out: deep tests beside fast ones; DEEP=all adds them"
    number, by = (slice_of_commit(), "by this commit") if wanted == "commit" else (int(wanted), "as asked")
    return f"left out: deep tests but for slice {number + 1} of {SLICES}, chosen {by}; make test-all runs all"
