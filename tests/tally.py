"""What several runs of pytest came to together: each notes its own outcome, and the last words are of all."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

NOTED_IN = "TEST_TALLY"  # the variable that names the file
COUNTED = ("failed", "passed", "skipped", "error")  # in the order in which pytest says them
WIDTH = 80


@dataclass
class Tally:
    """Counts and names of one run, or of several."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def words(self, took_s: float) -> list[str]:
        """Return the last words, in pytest's own form."""
        said = [f"{self.counts[what]} {what}" for what in COUNTED if self.counts[what]]
        clock = timedelta(seconds=round(took_s))
        total = f" {', '.join(said) or 'no tests ran'} in {took_s:.2f}s ({clock}) "
        return [*self.left_out, *self.wrong, total.center(WIDTH, "=")]


def note(stats: Mapping[str, Iterable[Any]], left_out: Iterable[str]) -> bool:
    """Note how this run of pytest ended, if somebody adds up; False when nobody does."""
    if NOTED_IN not in os.environ:
        return False
    counts = {what: len(list(stats.get(what, ()))) for what in COUNTED}
    wrong = [f"{what.upper()} {each.nodeid}" for what in ("failed", "error") for each in stats.get(what, ())]
    with Path(os.environ[NOTED_IN]).open("a") as noted:
        noted.write(json.dumps({"counts": counts, "wrong": wrong, "left_out": list(left_out)}) + "\n")
    return True


def added_up(noted: Path) -> Tally:
    """Add up what the runs noted; what several left out is said once."""
    total = Tally()
    for line in noted.read_text().splitlines() if noted.exists() else ():
        one = json.loads(line)
        total.counts.update(one["counts"])
        total.wrong += one["wrong"]
        total.left_out += [words for words in one["left_out"] if words not in total.left_out]
    return total
