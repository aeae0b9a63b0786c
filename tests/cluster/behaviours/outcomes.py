"""Compare the outcomes of each behaviour on both clusters."""

import hashlib
import json
import re
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from tests import session

WORLDS, FOLDER = ("simulated", "real"), "behaviours"


def folder() -> Path:
    made = session.folder() / FOLDER
    made.mkdir(exist_ok=True)
    return made


def behaviour_of(item: pytest.Item) -> str:
    """Return the name of the test without its cluster."""
    name = re.sub(r"\b(simulated|real)-|-(simulated|real)\b|\[(simulated|real)\]", "", item.nodeid)
    return name.partition("tests/cluster/")[2]


def compare(item: pytest.Item, world: str, outcome: dict[str, Any]) -> None:
    """Store an outcome; fail if it differs from the other cluster's."""
    text = json.dumps({"behaviour": behaviour_of(item), **outcome}, indent=1, sort_keys=True)
    key = hashlib.sha256(behaviour_of(item).encode()).hexdigest()[:16]
    for each in WORLDS:
        other = folder() / f"{key}.{each}"
        if each != world and other.exists():
            (folder() / f"{key}.{world}").write_text(text)
            differs = unified_diff(other.read_text().splitlines(), text.splitlines(), each, world, n=1, lineterm="")
            assert other.read_text() == text, "\n".join(["the outcomes differ", *differs])
    (folder() / f"{key}.{world}").write_text(text)


def table() -> list[str]:
    """Report how many behaviours matched on both clusters."""
    played = {world: {each.stem: each.read_text() for each in folder().glob(f"*.{world}")} for world in WORLDS}
    both = played["simulated"].keys() & played["real"].keys()
    if not both:
        return [f"behaviours on simulated clusters alone: {len(played['simulated'])}"]
    alike = [key for key in both if played["simulated"][key] == played["real"][key]]
    lines = [f"behaviours on both: {len(both)}, identical: {len(alike)}"]
    for key in sorted(both - set(alike)):
        lines.append(f"  differs: {json.loads(played['real'][key])['behaviour']}")
    return lines
