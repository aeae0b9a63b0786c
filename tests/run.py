"""`make test`: the whole suite, or a part of it: `python -m tests.run [folder, file or marker]`."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PYTEST = [sys.executable, "-m", "pytest"]
NOTHING_COLLECTED = 5


def selection(only: str) -> list[str]:
    """Turn a folder, file or marker into pytest's arguments."""
    path = only.partition("::")[0]
    if only == "cluster":  # such tests lie where their subject lies
        return ["-m", only]
    for candidate in (only, f"tests/{only}"):
        if (CHECKOUT / candidate.partition("::")[0]).exists():
            return [candidate]
    if only in markers():
        return ["-m", only]
    sys.exit(
        f"ONLY={only} is neither a folder or file ({path}, tests/{path}) nor a marker ({', '.join(markers())})."
    )


def markers() -> list[str]:
    """Return the markers that pyproject.toml declares."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    return [line.partition(":")[0] for line in project["tool"]["pytest"]["ini_options"]["markers"]]


def workers() -> list[str]:
    """Use the processors there are; one is quicker without a second process."""
    count = len(os.sched_getaffinity(0))
    return ["-n", str(min(count, 8))] if count > 1 else []


def run(*arguments: str) -> int:
    """Run pytest from the checkout."""
    return subprocess.call([*PYTEST, *arguments], cwd=CHECKOUT)


def main(only: str) -> int:
    """Run a part as asked, or everything: the browser first, because a suite's last words should be the suite's."""
    if only:
        return run(*selection(only))
    browser = 0
    # A file at a time: each has a server, a database and a browser of its own. And apart from the suite, because
    # Playwright keeps an event loop in its thread, which Django would refuse for every later test there.
    for file in sorted((CHECKOUT / "tests/browser").glob("**/test_*.py")):
        outcome = run(str(file.relative_to(CHECKOUT)))
        browser = browser or (0 if outcome == NOTHING_COLLECTED else outcome)
    if browser:
        os.environ["EARLIER_OUTCOME"] = "FAILED: tests/browser, in the runs above"
    suite = run(
        "--ignore=tests/browser", *workers(), "--cov", "--cov-report=term-missing", "--cov-fail-under=100"
    )
    return browser or suite


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
