"""Print requirements.lock without the embedded servers of `make run`, for the image.

It runs while the image is built, before anything is installed: standard library only.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def embedded(project: str) -> set[str]:
    """Return the names of the packages that embed servers."""
    extra = tomllib.loads(project)["project"]["optional-dependencies"]["embedded"]
    return {found.group() for found in map(NAME.match, extra) if found}


def without(lock: str, left_out: set[str]) -> Iterator[str]:
    """Yield the lines of the lock file, without those packages and their hashes."""
    keep = True
    for line in lock.splitlines():
        if found := NAME.match(line):  # a package starts at the margin, its hashes are indented
            keep = found.group() not in left_out
        if keep:
            yield line


def main() -> None:
    """Print the image's lock file."""
    left_out = embedded((ROOT / "pyproject.toml").read_text())
    sys.stdout.write("\n".join(without((ROOT / "requirements.lock").read_text(), left_out)) + "\n")


if __name__ == "__main__":
    main()
