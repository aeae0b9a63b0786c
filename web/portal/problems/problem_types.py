"""Problem types of the API: what each means, and what to do next.

A test compares them with the problems that the product has.
"""

import tomllib
from pathlib import Path
from typing import NamedTuple


class ProblemType(NamedTuple):
    """One problem type, as its page explains it."""

    status: int
    name: str
    cause: str
    advice: str


def _load_groups() -> dict[str, dict[str, ProblemType]]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {
        heading: {code: ProblemType(**entry) for code, entry in group.items()}
        for heading, group in tomllib.loads(text).items()
    }


PROBLEM_GROUPS = _load_groups()
PROBLEM_TYPES = {code: each for group in PROBLEM_GROUPS.values() for code, each in group.items()}
