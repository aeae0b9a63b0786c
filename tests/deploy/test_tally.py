"""Several runs of pytest have one last word, and it tells of all of them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import tally


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(tally.NOTED_IN, str(tmp_path / "tally"))
    return tmp_path / "tally"


def ended(*names: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(nodeid=f"tests/a.py::test_{name}") for name in names]


def test_runs_are_added_up_and_what_failed_is_named(noted: Path) -> None:
    assert tally.note({"passed": ended(*"abc"), "failed": ended("d")}, [])
    assert tally.note({"passed": ended("e"), "skipped": ended("f"), "error": ended("g")}, [])
    *wrong, total = tally.added_up(noted).words(3725.5)
    assert wrong == ["FAILED tests/a.py::test_d", "ERROR tests/a.py::test_g"]
    assert total.strip("=") == " 1 failed, 4 passed, 1 skipped, 1 error in 3725.50s (1:02:06) "


def test_what_several_left_out_is_said_once(noted: Path) -> None:
    for _ in range(2):
        tally.note({"passed": ended("a")}, ["left out: the moon"])
    assert tally.added_up(noted).words(1)[:-1] == ["left out: the moon"]


def test_a_run_of_its_own_notes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tally.NOTED_IN, raising=False)
    assert tally.note({"passed": ended("a")}, ["left out: the moon"]) is False


def test_runs_that_noted_nothing_have_run_nothing(tmp_path: Path) -> None:
    assert "no tests ran" in tally.added_up(tmp_path / "nothing").words(0)[0]
