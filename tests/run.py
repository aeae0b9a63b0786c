"""Run tests: `python -m tests.run [all | marker | folder or file ...]`."""

import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests import summary
from tests.controlplane import binaries

CHECKOUT = Path(__file__).resolve().parents[1]
PYTEST = [sys.executable, "-m", "pytest"]
NOTHING_COLLECTED = 5
FILES_WORTH_WORKERS = 6  # below that a second process costs more than it brings
# Only with every deep test: lines that one of them alone reaches are missing in four commits of five.
REQUIRE_COVERAGE = ["--cov", "--cov-report=term-missing", "--cov-fail-under=100"]
NO_BROWSER = "--ignore=tests/browser"
DEEP = "DEEP"  # variable: which deep tests


def selection(only: Sequence[str]) -> list[str]:
    """Turn folders, files or one marker into pytest's arguments."""
    if len(only) == 1 and only[0] in markers() and only[0] != "browser":  # which is a folder as well
        apart = {
            "cluster": cluster_workers(),
            "fast": workers(),
        }  # cluster tests lie where their subject lies
        return ["-m", *only, NO_BROWSER, *apart.get(only[0], workers(by_file=True))]
    paths = [located(name) for name in only]
    return [*paths, *speed_up([(CHECKOUT / path.partition("::")[0]).resolve() for path in paths])]


def located(name: str) -> str:
    """Return a test's path; the leading tests/ may be omitted."""
    for candidate in (name, f"tests/{name}"):
        if (CHECKOUT / candidate.partition("::")[0]).exists():
            return candidate
    path = name.partition("::")[0]
    sys.exit(f"ONLY={name} is neither a folder or file ({path}, tests/{path}) nor a marker ({', '.join(markers())}).")


def speed_up(places: list[Path]) -> list[str]:
    """Choose workers for many files, and no Django for the domain."""
    files = [file for place in places for file in (place.rglob("test_*.py") if place.is_dir() else [place])]
    by_file = any(map(holds_browser, places))
    quick = workers(by_file=by_file) if len(files) >= FILES_WORTH_WORKERS else []
    return [*quick, *(["-p", "no:django"] if all("domain" in place.parts for place in places) else [])]


def holds_browser(place: Path) -> bool:
    """Return whether a folder has browser tests."""
    browser = CHECKOUT / "tests/browser"
    return browser == place or place in browser.parents or browser in place.parents


def deep(only: Sequence[str]) -> list[str]:
    """Choose the deep tests by the selection and DEEP."""
    by_name = any("::" in name or name in markers() for name in only)
    usual = ("all" if by_name else "none") if only else "commit"
    return [f"--deep={os.environ.get(DEEP) or usual}"]


def markers() -> list[str]:
    """Return the markers that pyproject.toml declares."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    return [line.partition(":")[0] for line in project["tool"]["pytest"]["ini_options"]["markers"]]


def workers(*, by_file: bool = False) -> list[str]:
    """Use the processors there are; one is quicker without a second process."""
    count = len(os.sched_getaffinity(0))
    return ["-n", str(min(count, 8)), *(["--dist", "loadfile"] if by_file else [])] if count > 1 else []


def cluster_workers() -> list[str]:
    """Use at most two workers, each with its own control planes."""
    return ["-n", "2", "--dist", "loadfile"] if workers() else []


def run(*arguments: str, **env: str) -> int:
    """Run pytest from the checkout, with compiled files."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.call([*PYTEST, *arguments], cwd=CHECKOUT, env=inherited | env)


def parts(measure: Sequence[str] = ()) -> Iterator[tuple[str, list[str]]]:
    """Return the runs of the whole suite with their pytest arguments."""
    # By file: each has a server and a browser of its own. And apart from the rest, because Playwright keeps an event
    # loop in its thread, which Django would refuse for every later test there.
    yield "the browser tests", ["tests/browser", *workers(by_file=True)]
    yield "the fast and deep tests", [NO_BROWSER, "-m", "not cluster", *workers(), *measure]
    # Apart, because a life on a cluster is one long transaction, for which everybody's events would wait.
    if not binaries.missing_binaries():
        yield "the cluster tests", [NO_BROWSER, "-m", "cluster", *cluster_workers()]


def everything(*arguments: str, measure: Sequence[str]) -> int:
    """Run all parts, and end in a summary of all together."""
    began, earlier = time.monotonic(), os.environ.pop("EARLIER_OUTCOME", "")
    with tempfile.TemporaryDirectory(prefix="gpubroker-summary-") as folder:
        noted = Path(folder, "summary")
        ended = {name: run(*found, *arguments, **{summary.NOTED_IN: str(noted)}) for name, found in parts(measure)}
        total = summary.added_up(noted)
    bad = {name: how for name, how in ended.items() if how not in (0, NOTHING_COLLECTED)}
    total.wrong += [f"FAILED: {name} ended with {how}, in the runs above" for name, how in bad.items()]
    print("\n".join([*([earlier] if earlier else []), *total.lines(time.monotonic() - began)]), flush=True)
    return 1 if bad else 0


def main(only: Sequence[str]) -> int:
    """Run the selected tests, or all."""
    if only == ["all"]:
        return everything("--deep=all", measure=REQUIRE_COVERAGE)
    if only:
        slowest = [f"--durations={summary.SLOWEST}", "--durations-min=2"]
        return run(*selection(only), *deep(only), *slowest)
    return everything(*deep(only), measure=())


if __name__ == "__main__":
    sys.exit(main([name for name in sys.argv[1:] if name]))
