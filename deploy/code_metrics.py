"""Code-size metrics of this repository, compared with limits (`make house-figures`)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy import glossary_check

MAX_TEMPLATE_WIDTH = 120
# Request limits pass three files, archived projects one, and limits of new tenants and approvals one each.
EXECUTED_FILE_LIMITS = {"files executed by POST /leases": 32, "files executed by closing a month": 28}
TRACE_COMMAND = ("-m", "deploy.embedded.scratch", "python", "-m", "tests.journeys")


@dataclass(frozen=True)
class CodeMetric:
    """A measured code metric and its upper limit."""

    name: str
    value: int
    goal: int

    def line(self) -> str:
        """Return the metric as one JSON line."""
        return json.dumps({"figure": self.name, "value": self.value, "goal": self.goal, "ok": self.value <= self.goal})


def tracked_files() -> list[Path]:
    """Return every file that git tracks and that exists."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True, text=True).stdout
    return [path for path in map(Path, listed.split("\0")) if path.is_file()]


def count_code_metrics(files: list[Path]) -> Iterator[CodeMetric]:
    """Yield metrics of names, docstrings, templates, migrations and line counts."""
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
    yield CodeMetric(
        "first docstring lines over 15 words", sum(each > glossary_check.REPORTED_WORDS for each in lengths), 100
    )
    yield CodeMetric(
        "first docstring lines over 20 words", sum(each > glossary_check.REFUSED_WORDS for each in lengths), 0
    )
    yield CodeMetric("banned names", sum("bans this name" in each for each in faults), 0)
    yield CodeMetric("class names used three times or more", sum("a name of its own" in each for each in faults), 0)
    activities = [each.stem for each in product if each.stem.endswith("ing")]
    yield CodeMetric("modules named by -ing", sum(each not in glossary_check.FIELD_NOUNS for each in activities), 12)
    yield CodeMetric("template lines over 120 characters", sum(each > MAX_TEMPLATE_WIDTH for each in widths), 0)
    yield CodeMetric("mean template line, characters", round(sum(widths) / len(widths)), 45)
    yield CodeMetric("migrations", sum(each.match("migrations/0*.py") for each in code), 16)
    yield CodeMetric("lines of Python in the product", sum(each.read_bytes().count(b"\n") for each in product), 72_000)


def count_executed_files() -> Iterator[CodeMetric]:
    """Yield how many source files two traced request flows execute, on a temporary database."""
    traced = subprocess.run([sys.executable, *TRACE_COMMAND], stdout=subprocess.PIPE, check=True, text=True).stdout
    counts = json.loads(traced.splitlines()[-1])
    for name, goal in EXECUTED_FILE_LIMITS.items():
        yield CodeMetric(name, counts[name], goal)


def main() -> int:
    """Print one line per metric; fail if one exceeds its limit."""
    metrics = [*count_code_metrics(tracked_files()), *count_executed_files()]
    print("\n".join(each.line() for each in metrics))
    return 0 if all(each.value <= each.goal for each in metrics) else 1


if __name__ == "__main__":
    sys.exit(main())
