"""`make check` uses mypy's daemon when it matches, else mypy."""

import subprocess
from pathlib import Path

import pytest

from deploy import type_check

ERROR = "billing/x.py:1: error: no such name"


class Dmypy:
    """Fake daemon that records its calls."""

    def __init__(self, **answers: tuple[int, str]) -> None:
        self.answers, self.calls = answers, list[str]()

    def __call__(self, _: Path, what: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        self.calls.append(what)
        code, words = self.answers.get(what, (0, ""))
        return subprocess.CompletedProcess([], code, words, "")


@pytest.fixture
def mypy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Record calls of mypy, which finds no errors."""
    called = list[str]()
    monkeypatch.delenv("MYPY_DAEMON", raising=False)
    monkeypatch.setattr(type_check, "FOLDER", tmp_path)
    monkeypatch.setattr(type_check.subprocess, "call", lambda command: called.append(command[0]) or 0)
    return called


def judged(monkeypatch: pytest.MonkeyPatch, dmypy: Dmypy) -> int:
    monkeypatch.setattr(type_check, "_dmypy", dmypy)
    return type_check.main([])


def test_a_running_daemon_checks_the_types(
    monkeypatch: pytest.MonkeyPatch, mypy: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(monkeypatch, Dmypy(run=(1, ERROR))) == 1
    assert (mypy, capsys.readouterr().out) == ([], ERROR)


def test_without_a_daemon_mypy_checks_the_types_and_a_daemon_is_started(
    monkeypatch: pytest.MonkeyPatch, mypy: list[str]
) -> None:
    dmypy = Dmypy(status=(2, ""))
    assert judged(monkeypatch, dmypy) == 0
    assert (len(mypy), dmypy.calls) == (1, ["status", "start"])


def test_if_the_daemon_fails_mypy_checks_the_types(monkeypatch: pytest.MonkeyPatch, mypy: list[str]) -> None:
    assert judged(monkeypatch, Dmypy(run=(2, "Daemon crashed!"))) == 0
    assert len(mypy) == 1


def test_no_daemon_is_started_if_daemons_are_disabled(monkeypatch: pytest.MonkeyPatch, mypy: list[str]) -> None:
    monkeypatch.setenv("MYPY_DAEMON", "no")
    dmypy = Dmypy()
    assert judged(monkeypatch, dmypy) == 0
    assert (len(mypy), dmypy.calls) == (1, [])


def test_a_changed_model_restarts_the_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in type_check.CONFIGURATION:
        (tmp_path / name).touch()
    (tmp_path / "billing" / "models").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    before = type_check.state()
    (tmp_path / "billing" / "models" / "invoices.py").write_text("x = 1")
    assert type_check.state() != before
