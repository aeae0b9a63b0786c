"""Add up several runs of pytest into one summary."""

import heapq
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

NOTED_IN = "TEST_SUMMARY"  # the variable that names the file
COUNTED = ("failed", "passed", "skipped", "error")  # in the order in which pytest says them
SLOWEST = 20
WIDTH = 80


@dataclass
class Summary:
    """Counts and names of one run, or of several."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)

    def lines(self, took_s: float) -> list[str]:
        """Return the summary, ending in pytest's own form."""
        slowest = [f"{seconds:8.2f}s {name}" for seconds, name in heapq.nlargest(SLOWEST, self.slowest)]
        title = [f" slowest {len(slowest)} ".center(WIDTH, "=")] if slowest else []
        said = [f"{self.counts[what]} {what}" for what in COUNTED if self.counts[what]]
        clock = timedelta(seconds=round(took_s))
        total = f" {', '.join(said) or 'no tests ran'} in {took_s:.2f}s ({clock}) "
        return [*title, *slowest, *self.left_out, *self.wrong, total.center(WIDTH, "=")]


def note(stats: Mapping[str, Iterable[Any]], left_out: Iterable[str]) -> bool:
    """Note how this run of pytest ended, if somebody adds up; False when nobody does."""
    if NOTED_IN not in os.environ:
        return False
    counts = {what: len(list(stats.get(what, ()))) for what in COUNTED}
    wrong = [f"{what.upper()} {each.nodeid}" for what in ("failed", "error") for each in stats.get(what, ())]
    values = {"counts": counts, "wrong": wrong, "left_out": list(left_out), "slowest": slowest(stats)}
    with Path(os.environ[NOTED_IN]).open("a") as noted:
        noted.write(json.dumps(values) + "\n")
    return True


def slowest(stats: Mapping[str, Iterable[Any]]) -> list[tuple[float, str]]:
    """Return the slowest phases of tests, with fixtures counted separately."""
    reports = {id(each): each for kind in stats.values() for each in kind if hasattr(each, "duration")}
    took = [(round(each.duration, 2), f"{each.when:8} {each.nodeid}") for each in reports.values()]
    return heapq.nlargest(SLOWEST, took)


def added_up(noted: Path) -> Summary:
    """Add up what the runs noted; what several left out is said once."""
    total = Summary()
    for line in noted.read_text().splitlines() if noted.exists() else ():
        one = json.loads(line)
        total.counts.update(one["counts"])
        total.wrong += one["wrong"]
        total.left_out += [words for words in one["left_out"] if words not in total.left_out]
        total.slowest += [(seconds, name) for seconds, name in one["slowest"]]
    return total
