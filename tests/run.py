"""`make test`: the whole suite, or a part of it: `python -m tests.run [folder, file or marker]`."""

import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests import tally
from tests.controlplane import binaries

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


def cluster_workers() -> list[str]:
    """Use two at most: each has control planes of its own, starts them once for a whole file, and mostly waits."""
    return ["-n", "2", "--dist", "loadfile"] if workers() else []


def run(*arguments: str, **env: str) -> int:
    """Run pytest from the checkout."""
    return subprocess.call([*PYTEST, *arguments], cwd=CHECKOUT, env=os.environ | env)


def parts() -> Iterator[tuple[str, list[str]]]:
    """Name the runs of the whole suite, and what pytest is told in each."""
    # A file at a time: each has a server, a database and a browser of its own. And apart from the rest, because
    # Playwright keeps an event loop in its thread, which Django would refuse for every later test there.
    for file in sorted((CHECKOUT / "tests/browser").glob("**/test_*.py")):
        yield f"tests/browser/{file.name}", [str(file.relative_to(CHECKOUT))]
    rest = ["--ignore=tests/browser"]
    coverage = ["--cov", "--cov-report=term-missing", "--cov-fail-under=100"]
    yield "the suite without a cluster", [*rest, "-m", "not cluster", *workers(), *coverage]
    # Apart, because a life on a cluster is one long transaction, for which everybody's events would wait.
    if not binaries.missing():
        yield "what speaks to a cluster", [*rest, "-m", "cluster", *cluster_workers()]


def everything() -> int:
    """Run all parts, and let the last words be those of all together."""
    began, earlier = time.monotonic(), os.environ.pop("EARLIER_OUTCOME", "")
    with tempfile.TemporaryDirectory(prefix="gpubroker-tally-") as folder:
        noted = Path(folder, "tally")
        ended = {name: run(*arguments, **{tally.NOTED_IN: str(noted)}) for name, arguments in parts()}
        total = tally.added_up(noted)
    bad = {name: how for name, how in ended.items() if how not in (0, NOTHING_COLLECTED)}
    total.wrong += [f"FAILED: {name} ended with {how}, in the runs above" for name, how in bad.items()]
    print("\n".join([*([earlier] if earlier else []), *total.words(time.monotonic() - began)]), flush=True)
    return 1 if bad else 0


def main(only: str) -> int:
    """Run a part as asked, or everything."""
    if only:
        return run(*selection(only), *(cluster_workers() if only == "cluster" else []))
    return everything()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
