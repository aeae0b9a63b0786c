"""Every cluster fault has a test without a control plane and one with it."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.faults import DOCUMENT, FAULTS, Fault, to_markdown

CHECKOUT = Path(__file__).resolve().parents[2]
# The faults that must be covered: one that is dropped from the table is missed here.
REQUIRED_FAULTS = """
409 on apply, 409 on delete precondition, 403 quota, 422, 429 with Retry-After, 503 with Retry-After, 410 in the stream,
silent stall, API server killed, etcd stopped, restored from an old backup, empty list by mistake, token revoked,
permission lost, worker or agent killed between any two calls, pod evicted, preempted, OOMKilled,
image that never pulls, node lost and back, finalizer stuck, namespace deleted by hand,
a foreign object with our name, tenant edits our object, device plugin reports fewer devices,
MIG change that wedges, cluster unreachable for hours
"""
CLUSTER_FIXTURES = ("control_plane", "own_control_plane", "kubernetes_stage", "way", "watching", "brittle")
SHARED_FIXTURES = ("world", "stage")


@cache
def parameters_by_test(path: str) -> dict[str, tuple[str, ...]]:
    """Return the tests of a file with their parameters."""
    tree = ast.parse((CHECKOUT / path).read_text())
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {node.name: tuple(arg.arg for arg in node.args.args) for node in found if node.name.startswith("test_")}


def parameters_of(test: str) -> tuple[str, ...]:
    """Return the parameters of a named test, or fail when there is no such test."""
    path, _, rest = test.partition("::")
    name, _, parameter = rest.partition("[")
    assert name in parameters_by_test(path), f"{path} has no test {name}"
    if parameter:
        text = (CHECKOUT / path).read_text()
        assert f'"{parameter[:-1]}"' in text or parameter[:-1] in ("429", "503"), f"{path} plays no {parameter}"
    return parameters_by_test(path)[name]


def test_every_required_fault_is_in_the_table() -> None:
    assert set(FAULTS) == {" ".join(each.split()) for each in REQUIRED_FAULTS.split(",")}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_tested_on_simulated_and_real_clusters(fault: Fault) -> None:
    assert any(not set(parameters_of(test)) & set(CLUSTER_FIXTURES) for test in fault.simulated)
    assert any(set(parameters_of(test)) & {*CLUSTER_FIXTURES, *SHARED_FIXTURES} for test in fault.real)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_separate_tests_of_a_fault_have_a_reason(fault: Fault) -> None:
    alone = set(fault.simulated) ^ set(fault.real)
    assert bool(alone) is bool(fault.why)
    for test in fault.shared:
        assert set(parameters_of(test)) & set(SHARED_FIXTURES), f"{test} does not run on both kinds of cluster"
    for test in alone:
        assert bool(set(parameters_of(test)) & set(CLUSTER_FIXTURES)) is (test in fault.real), f"{test} is elsewhere"


def test_the_documented_table_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == to_markdown(), "run python -m tests.architecture.faults"


def test_a_missing_test_is_reported() -> None:
    with pytest.raises(AssertionError, match="has no test"):
        parameters_of("tests/cluster/test_faults.py::test_nobody_wrote")
