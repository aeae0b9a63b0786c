"""The menu's commands: what each runs, what it says, and when it fails."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.figures import Figures
from deploy import bench, check

ROOT = Path(__file__).resolve().parents[2]
PROMISED = {"run", "test", "check", "bench", "replay", "help"}
AREAS = ("house", "kubernetes", "placement", "billing", "face", "telemetry")


def made(*arguments: str) -> str:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_help_names_every_command_there_is_with_what_it_does() -> None:
    told = dict(re.findall(r"^  make ([a-z-]+) +(\S.*)$", made("help"), re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(told) == set(phony.split()) - {"env", "env-dev"}
    assert set(told) >= PROMISED


def test_check_looks_at_all_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {name: " ".join(command) for name, command in check.STEPS.items()}
    for name, part in (
        ("format", "ruff format --check"),
        ("lint", "ruff check"),
        ("types", "mypy"),
        ("import contract", "lint-imports"),
        ("migrations complete", "makemigrations --check"),
        ("deployment", "check --deploy"),
        ("secrets", "deploy.secret_scan"),
    ):
        assert part in steps[name]
    assert "deploy.check" in made("--dry-run", "check")


def test_check_goes_through_all_steps_and_fails_when_one_does(
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


@pytest.mark.parametrize("area", AREAS)
def test_every_area_has_benchmarks_of_its_own(area: str) -> None:
    assert bench.modules(area)
    assert set(bench.modules(area)) <= set(bench.modules(""))


def test_an_area_that_is_none_is_named_beside_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main("hous") == 2
    assert capsys.readouterr().err.endswith(f"there are: {', '.join(sorted(AREAS))}\n")


class Ready:
    """A throwaway installation on which every benchmark but one meets its goals."""

    def __enter__(self) -> "Ready":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, *command: str) -> int:
        return int(command[-1] == "bench.house_api")


@pytest.mark.parametrize(("area", "status"), [("", 1), ("house", 1), ("face", 0)])
def test_one_goal_missed_anywhere_fails_the_whole(
    area: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "scratch", Ready)
    assert bench.main(area) == status


def test_each_figure_is_one_line_of_json_and_one_missed_is_enough_to_fail(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = Figures("house")
    figures.rate("fast", 100, baseline=100, at_least=0.5)
    figures.ratio("slow", 3, baseline=2, at_most=1.4)
    figures.most("many", 8, unit="s", at_most=8)
    figures.least("few", 8, unit="s", at_least=8)
    with pytest.raises(SystemExit) as left:
        figures.leave()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["figure"], line["ok"]) for line in lines] == [
        ("fast", True),
        ("slow", False),
        ("many", True),
        ("few", True),
    ]
    assert (lines[1]["bench"], lines[1]["value"], lines[1]["ratio"]) == ("house", 3, 1.5)
    assert left.value.code == 1


def test_what_a_machine_cannot_run_is_one_line_each_that_says_how_to_add_it(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TEST_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", "no:django"]
    told = subprocess.run(
        [*command, "tests/deploy/test_tally.py"],
        cwd=ROOT,
        env=env | {"PATH": str(tmp_path), "HOME": str(tmp_path), "CONTROLPLANE": "none"},
        capture_output=True,
        text=True,
    ).stdout
    for what, how in (
        ("tests/browser", "apt-get install chromium"),
        ("tests/chart", "make controlplane"),
        ("tests/chart/processes", "root may"),
        ("what speaks to a cluster", "make controlplane"),
    ):
        assert len(re.findall(rf"^left out: {what}: .*{how}", told, re.MULTILINE)) == 1, told
