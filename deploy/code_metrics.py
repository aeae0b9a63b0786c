"""Command `make house-figures`: count names, docstrings, templates, lines and files of journeys."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy import glossary_check

MAX_TEMPLATE_WIDTH = 120
JOURNEY_GOALS = {"files that POST /leases passes": 26, "files that closing a month passes": 28}
TRACE_JOURNEYS = ("-m", "deploy.embedded.scratch", "python", "-m", "tests.journeys")


@dataclass(frozen=True)
class Figure:
    """A count and the most it may be."""

    name: str
    value: int
    goal: int

    def line(self) -> str:
        """Return the figure as one JSON line."""
        return json.dumps({"figure": self.name, "value": self.value, "goal": self.goal, "ok": self.value <= self.goal})


def tracked_files() -> list[Path]:
    """Return every file that git tracks and that exists."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True, text=True).stdout
    return [path for path in map(Path, listed.split("\0")) if path.is_file()]


def count_figures(files: list[Path]) -> Iterator[Figure]:
    """Yield the figures of the tracked files."""
    glossary = glossary_check.GLOSSARY.read_text()
    banned = glossary_check.read_banned_names(glossary)
    replaced = glossary_check.read_replaced_words(glossary)
    code = [each for each in files if each.suffix == ".py" and each.parts[0] in glossary_check.LAYERS]
    product = [each for each in code if "migrations" not in each.parts]
    definitions = [found for each in product for found in glossary_check.find_definitions(each)]
    faults = list(glossary_check.find_faults(definitions, banned, replaced))
    lengths = [len(each.summary.split()) for each in definitions]
    pages = [each for each in files if each.parts[0] == "templates" and each.suffix == ".html"]
    widths = [len(line) for each in pages for line in each.read_text().splitlines() if line.strip()]
    yield Figure(
        "first docstring lines over 15 words", sum(each > glossary_check.REPORTED_WORDS for each in lengths), 100
    )
    yield Figure("first docstring lines over 20 words", sum(each > glossary_check.REFUSED_WORDS for each in lengths), 0)
    yield Figure("banned names", sum("bans this name" in each for each in faults), 0)
    yield Figure("class names used three times or more", sum("a name of its own" in each for each in faults), 0)
    activities = [each.stem for each in product if each.stem.endswith("ing")]
    yield Figure("modules named by -ing", sum(each not in glossary_check.FIELD_NOUNS for each in activities), 12)
    yield Figure("template lines over 120 characters", sum(each > MAX_TEMPLATE_WIDTH for each in widths), 0)
    yield Figure("mean template line, characters", round(sum(widths) / len(widths)), 45)
    yield Figure("migrations", sum(each.match("migrations/0*.py") for each in code), 16)
    yield Figure("lines of Python in the product", sum(each.read_bytes().count(b"\n") for each in product), 72_000)


def count_journeys() -> Iterator[Figure]:
    """Yield how many files two journeys pass, traced on a temporary database."""
    traced = subprocess.run([sys.executable, *TRACE_JOURNEYS], stdout=subprocess.PIPE, check=True, text=True).stdout
    counts = json.loads(traced.splitlines()[-1])
    for name, goal in JOURNEY_GOALS.items():
        yield Figure(name, counts[name], goal)


def main() -> int:
    """Print one line per figure; fail if one misses its goal."""
    figures = [*count_figures(tracked_files()), *count_journeys()]
    print("\n".join(each.line() for each in figures))
    return 0 if all(each.value <= each.goal for each in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
