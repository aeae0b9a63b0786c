"""Writer of the page on faults and the tests that keep them fixed.

`python -m tests.architecture.fault_tests` writes docs/reference/fault-tests.md from tests/fault_tests.toml.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TABLE = CHECKOUT / "tests" / "fault_tests.toml"
DOCUMENT = CHECKOUT / "docs" / "reference" / "fault-tests.md"
HEAD = """# Faults and the tests that keep them fixed

Each fault was seen in the product, or was something that it lacked. The tests beside it check that it stays fixed; a
file without a test's name means all of its tests.

Written by `python -m tests.architecture.fault_tests` from `tests/fault_tests.toml`; a test compares the page with that
table and the table with the tests.
"""
COLUMNS = "| Fault | Tests |\n|---|---|\n"


@dataclass(frozen=True)
class FixedFault:
    """What was wrong, and the tests that keep it fixed."""

    what: str
    tests: tuple[str, ...]  # "file::test", or a whole file


def load_areas() -> dict[str, list[FixedFault]]:
    """Return the faults of each area, in the order of the table."""
    areas = tomllib.loads(TABLE.read_text())["area"]
    return {area["name"]: [FixedFault(row["what"], tuple(row["tests"])) for row in area["fault"]] for area in areas}


def to_markdown() -> str:
    """Return the page as Markdown."""
    return HEAD + "".join(f"\n## {name}\n{COLUMNS}{_rows(faults)}" for name, faults in load_areas().items())


def _rows(faults: Iterable[FixedFault]) -> str:
    return "".join(
        f"| {fault.what.replace('|', '&#124;')} | {'<br>'.join(f'`{test}`' for test in fault.tests)} |\n"
        for fault in faults
    )


if __name__ == "__main__":
    DOCUMENT.write_text(to_markdown())
