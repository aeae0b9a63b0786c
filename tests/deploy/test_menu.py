"""Make targets: commands, output and exit status."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import check
from tests import run
from tests.controlplane import binaries

ROOT = Path(__file__).resolve().parents[2]
PROMISED = {
    "run",
    "test",
    "test-fast",
    "test-all",
    "check",
    "bench",
    "replay",
    "controlplane",
    "demo-kubernetes",
    "demo-first-day",
    "help",
}


def made(*arguments: str) -> str:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_help_lists_every_target_with_a_description() -> None:
    values = dict(re.findall(r"^  make ([a-z-]+) +(\S.*)$", made("help"), re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(values) == set(phony.split()) - {"env", "env-dev"}
    assert set(values) >= PROMISED


def test_check_contains_every_promised_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {name: " ".join(command) for name, command in check.STEPS.items()}
    for name, part in (
        ("format", "ruff format --check"),
        ("lint", "ruff check"),
        ("types", "deploy.type_check"),
        ("import contract", "lint-imports"),
        ("migrations complete", "makemigrations --check"),
        ("deployment", "check --deploy"),
        ("secrets", "deploy.secret_scan"),
    ):
        assert part in steps[name]
    assert "deploy.check" in made("--dry-run", "check")


def test_check_runs_all_steps_and_fails_if_one_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def step(status: int) -> list[str]:
        return [sys.executable, "-c", f"print('words of {status}'); raise SystemExit({status})"]

    monkeypatch.setattr(check, "STEPS", {"first": step(3), "second": step(0)})
    assert check.main() == 1
    said = capsys.readouterr().out
    assert re.findall(r"^(ok|FAILED) +(\w+)", said, re.MULTILINE) == [("FAILED", "first"), ("ok", "second")]
    assert "words of 3" in said
    assert "words of 0" not in said
    monkeypatch.setattr(check, "STEPS", {"second": step(0)})
    assert check.main() == 0


def test_make_controlplane_builds_the_control_plane() -> None:
    assert "-m tests.controlplane.build" in made("--dry-run", "controlplane")


@pytest.mark.parametrize(("missing", "speaks"), [([], True), (["kwok"], False)])
def test_cluster_tests_run_only_if_the_control_plane_is_built(
    missing: list[str], speaks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "missing_binaries", lambda: missing)
    marks = [said[said.index("-m") + 1] for _, said in run.parts() if "-m" in said]
    assert marks == ["not cluster", *(["cluster"] if speaks else [])]


def test_a_domain_file_runs_without_django_and_without_workers() -> None:
    assert run.selection(["billing/domain/test_money.py"]) == [
        "tests/billing/domain/test_money.py", "-p", "no:django"]  # fmt: skip
    assert run.selection(["tests/billing/periods/test_billing_periods.py"]) == [
        "tests/billing/periods/test_billing_periods.py"
    ]


def test_browser_tests_are_distributed_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    for chosen in (
        run.selection(["browser"]),
        run.selection(["tests"]),
        dict(run.parts())["the browser tests"],
    ):
        assert chosen[1:] == ["-n", "2", "--dist", "loadfile"]


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        ([], "commit"),
        (["tests/ports"], "none"),
        (["deep"], "all"),
        (["tests/ports/test_mail.py::test_x"], "all"),
    ],
)
def test_deep_tests_are_chosen_by_commit_or_by_name(
    only: list[str], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEEP", raising=False)
    assert run.deep(only) == [f"--deep={wanted}"]
    monkeypatch.setenv("DEEP", "3")
    assert run.deep(only) == ["--deep=3"]


def test_skipped_tests_are_listed_with_the_package_to_install(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TEST_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", "no:django"]
    found = subprocess.run(
        [*command, "tests/deploy/test_summary.py"],
        cwd=ROOT,
        env=env | {"PATH": str(tmp_path), "HOME": str(tmp_path), "CONTROLPLANE": "none"},
        capture_output=True,
        text=True,
    ).stdout
    for what, how in (
        ("tests/browser", "apt-get install chromium"),
        ("tests/chart", "make controlplane"),
        ("tests/chart/processes", "root may"),
        ("cluster tests", "make controlplane"),
    ):
        assert len(re.findall(rf"^left out: {what}: .*{how}", found, re.MULTILINE)) == 1, found
