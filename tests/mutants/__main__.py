"""Plant each mistake and run its test: `python -m tests.mutants [B12 …]`.

Prints a table of all bug classes, and ends with 1 where a mutant lives or a class is owed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.classes import CLASSES, BugClass, Mutant

ROOT = Path(__file__).resolve().parents[2]
FAILED = 1  # pytest's word for tests that ran and failed
SECONDS = 600


def copied(to: Path) -> Path:
    """Copy what the project is made of, with the environment that this runs in."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file() and not source.is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to / name)
    return to


def planted(copy: Path, mutant: Mutant) -> str:
    """Write the mistake into the copy; return the file as it was."""
    path = copy / mutant.file
    before = path.read_text()
    if before.count(mutant.text) != 1:
        raise SystemExit(f"{mutant.file} does not hold the text of its mutant once: {mutant.text[:60]!r}")
    path.write_text(before.replace(mutant.text, mutant.instead))
    return before


def outcome(copy: Path, test: str) -> int:
    """Run a test there, and return how pytest ended."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        test,
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
    ]
    environment = os.environ | {"CONTROLPLANE": "none"}
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=SECONDS, check=False)
    return ran.returncode


def verdict(copy: Path, bug: BugClass) -> str:
    if not bug.test:
        return "owed: no test yet"
    if bug.mutant is None:
        return "owed: no mutant yet"
    before = planted(copy, bug.mutant)
    try:
        ended = outcome(copy, bug.test)
    finally:
        (copy / bug.mutant.file).write_text(before)
    return "killed" if ended == FAILED else f"LIVES (pytest ended with {ended})"


def main(requested: Iterable[str]) -> int:
    wanted = set(requested)
    bugs = [bug for bug in CLASSES if not wanted or bug.id in wanted]
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        for bug in bugs:
            said = verdict(copy, bug)
            killed += said == "killed"
            print(f"{bug.id:4} {said:22} {bug.what}  [{bug.test.rpartition('/')[2]}]", flush=True)
    print(f"{killed} of {len(bugs)} bug classes have a mutant that their test kills")
    return 0 if killed == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
