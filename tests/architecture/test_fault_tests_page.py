"""Every fault that was fixed names tests that exist, and the page shows the table."""

import ast
from functools import cache

from tests.architecture.fault_tests import CHECKOUT, DOCUMENT, FixedFault, load_areas, to_markdown


def faults() -> list[FixedFault]:
    return [fault for area in load_areas().values() for fault in area]


@cache
def list_tests(path: str) -> frozenset[str]:
    """Return the names of a file's tests; none without the file."""
    file = CHECKOUT / path
    if not file.is_file():
        return frozenset()
    nodes = ast.walk(ast.parse(file.read_text()))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    return name in list_tests(path) if name else bool(list_tests(path))


def test_every_test_of_a_fault_exists() -> None:
    assert [test for fault in faults() for test in fault.tests if not exists(test)] == []


def test_every_fault_has_a_test_and_every_area_a_fault() -> None:
    assert [fault.what for fault in faults() if not fault.tests] == []
    assert [name for name, area in load_areas().items() if not area] == []


def test_no_fault_and_none_of_its_tests_is_listed_twice() -> None:
    sentences = [fault.what for fault in faults()]
    assert len(sentences) == len(set(sentences))
    assert [fault.what for fault in faults() if len(fault.tests) != len(set(fault.tests))] == []


def test_the_page_of_faults_and_tests_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == to_markdown(), "run python -m tests.architecture.fault_tests"
