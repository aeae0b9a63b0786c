"""Command of `make attacks`: every test with the marker `attack`, wherever it lies, and a table of the results."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MARKER = "pytest.mark.attack"


def files_with_attacks() -> list[str]:
    """Return the files of tests that use the marker."""
    return sorted(str(file) for file in TESTS.rglob("test_*.py") if MARKER in file.read_text())


if __name__ == "__main__":
    command = [sys.executable, "-m", "pytest", "-p", "tests.attacks.report", "-p", "no:randomly", "-q", "-m", "attack"]
    sys.exit(subprocess.call([*command, *files_with_attacks()], cwd=TESTS.parent))
