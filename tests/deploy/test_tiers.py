"""Selection of tests by tier and commit."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import tiers


class Item(SimpleNamespace):
    """The parts of a pytest item that tiers use."""

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, name: str) -> None:
        self.marks.add(name)

    def __hash__(self) -> int:
        return id(self)


def item(nodeid: str, *marks: str) -> Any:
    return Item(nodeid=nodeid, marks=set(marks))


MANY = [item(f"tests/a.py::test_{n}", "deep") for n in range(200)]


def ran(items: list[Any], wanted: str) -> list[Any]:
    left = tiers.left_out(items, wanted)
    return [each for each in items if each not in left]


def test_a_test_without_a_marker_is_fast_and_a_chaos_test_is_deep() -> None:
    plain, browser, chaos = item("a"), item("b", "browser"), item("c", "chaos")
    tiers.sort([plain, browser, chaos])
    assert (plain.marks, browser.marks, chaos.marks) == ({"fast"}, {"browser"}, {"chaos", "deep"})


def test_five_slices_contain_every_deep_test_once() -> None:
    slices = [ran(MANY, str(number)) for number in range(tiers.SLICES)]
    assert sorted(each.nodeid for part in slices for each in part) == sorted(each.nodeid for each in MANY)
    assert min(map(len, slices)) > 20


def test_tests_that_are_not_deep_always_run() -> None:
    fast = item("tests/b.py::test_quick", "fast")
    assert ran([fast, *MANY], "none") == [fast]
    assert all(fast in ran([fast, *MANY], str(number)) for number in range(tiers.SLICES))


def test_a_selection_of_only_deep_tests_runs_them() -> None:
    assert ran(MANY, "none") == MANY


def test_chaos_tests_of_one_file_are_in_one_slice() -> None:
    chaos = [item(f"tests/chaos/test_a.py::test_{n}", "chaos", "deep") for n in range(9)]
    assert len({tiers.slice_of(each) for each in chaos}) == 1


def commit(folder: Path) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "x"], cwd=folder, check=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setattr(tiers, "CHECKOUT", tmp_path)
    return tmp_path


def test_five_commits_in_a_row_choose_five_slices(repository: Path) -> None:
    chosen = set()
    for _ in range(tiers.SLICES):
        commit(repository)
        chosen.add(tiers.slice_of_commit.__wrapped__())
    assert chosen == set(range(tiers.SLICES))


def test_without_a_commit_the_first_slice_runs(repository: Path) -> None:
    assert tiers.slice_of_commit.__wrapped__() == tiers.SLICE_WITHOUT_GIT


def test_in_a_shallow_clone_the_name_of_the_commit_chooses(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        commit(repository)
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", repository.as_uri(), str(shallow)], check=True)
    monkeypatch.setattr(tiers, "CHECKOUT", shallow)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=shallow, capture_output=True, text=True).stdout
    assert tiers.slice_of_commit.__wrapped__() == int(head, 16) % tiers.SLICES
