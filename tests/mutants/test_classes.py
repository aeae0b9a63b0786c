"""All 44 bug classes are listed with their tests and mutants."""

from pathlib import Path

import pytest

from tests.mutants.classes import CLASSES, BugClass

ROOT = Path(__file__).resolve().parents[2]


def test_all_44_bug_classes_are_listed() -> None:
    assert [bug.id for bug in CLASSES] == [f"B{n}" for n in range(1, 45)]


@pytest.mark.parametrize("bug", [bug for bug in CLASSES if bug.test], ids=lambda bug: bug.id)
def test_the_test_of_a_bug_class_exists(bug: BugClass) -> None:
    file, _, name = bug.test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text() if name else (ROOT / file).is_file()


@pytest.mark.parametrize("bug", [bug for bug in CLASSES if bug.mutant], ids=lambda bug: bug.id)
def test_the_mistake_of_a_class_can_still_be_planted(bug: BugClass) -> None:
    assert bug.mutant is not None
    assert (ROOT / bug.mutant.file).read_text().count(bug.mutant.text) == 1
    assert bug.mutant.instead != bug.mutant.text
