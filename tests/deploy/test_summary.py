"""Summary of several runs of pytest."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import summary


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(summary.NOTED_IN, str(tmp_path / "summary"))
    return tmp_path / "summary"


def ended(*names: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(nodeid=f"tests/a.py::test_{name}") for name in names]


def timed(*took: float) -> list[SimpleNamespace]:
    return [SimpleNamespace(nodeid=f"tests/a.py::test_{n}", duration=n, when="call") for n in took]


def test_runs_are_summed_up_and_failed_tests_are_listed(noted: Path) -> None:
    assert summary.note({"passed": ended(*"abc"), "failed": ended("d")}, [])
    assert summary.note({"passed": ended("e"), "skipped": ended("f"), "error": ended("g")}, [])
    *wrong, total = summary.added_up(noted).lines(3725.5)
    assert wrong == ["FAILED tests/a.py::test_d", "ERROR tests/a.py::test_g"]
    assert total.strip("=") == " 1 failed, 4 passed, 1 skipped, 1 error in 3725.50s (1:02:06) "


def test_tests_skipped_by_several_runs_are_listed_once(noted: Path) -> None:
    for _ in range(2):
        summary.note({"passed": ended("a")}, ["left out: the moon"])
    assert summary.added_up(noted).lines(1)[:-1] == ["left out: the moon"]


def test_a_run_outside_of_a_suite_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(summary.NOTED_IN, raising=False)
    assert summary.note({"passed": ended("a")}, ["left out: the moon"]) is False


def test_without_recorded_results_the_summary_is_no_tests_ran(tmp_path: Path) -> None:
    assert "no tests ran" in summary.added_up(tmp_path / "nothing").lines(0)[0]


def test_the_slowest_tests_of_all_runs_are_listed_in_order(noted: Path) -> None:
    assert summary.note({"passed": timed(*range(1, 30))}, [])
    assert summary.note({"passed": timed(40), "failed": timed(5)}, [])
    title, *named = summary.added_up(noted).lines(1)[: summary.SLOWEST + 1]
    assert title.strip("=") == " slowest 20 "
    assert [line.split()[0] for line in named] == ["40.00s", *(f"{n}.00s" for n in range(29, 10, -1))]
