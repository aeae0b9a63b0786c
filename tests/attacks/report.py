"""Plugin of pytest that prints every attack and whether it was refused."""

from typing import Any

import pytest

TITLE = pytest.StashKey[str]()
WORDS = {"passed": "refused", "failed": "NOT REFUSED", "error": "not tried"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep what each attack tries, from its marker, or its name."""
    for item in items:
        if mark := item.get_closest_marker("attack"):
            item.user_properties.append(("attack", mark.args[0] if mark.args else item.name.replace("_", " ")))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table."""
    rows = [
        (dict(report.user_properties)["attack"], word)
        for outcome, word in WORDS.items()
        for report in terminalreporter.stats.get(outcome, [])
        if "attack" in dict(getattr(report, "user_properties", ()))
    ]
    width = max((len(what) for what, _ in rows), default=0)
    terminalreporter.section("attacks")
    for what, word in sorted(rows):
        terminalreporter.write_line(f"{what:<{width}}  {word}")
