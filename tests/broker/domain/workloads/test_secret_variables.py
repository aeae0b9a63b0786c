"""Saved secrets in workloads: names, values, and variables that they may set."""

import pytest

from broker.domain.workloads.secret_variables import (
    MAX_VALUE_BYTES,
    SecretVariable,
    secret_name_fault,
    secret_value_fault,
)
from broker.domain.workloads.templates import Workload, build_program
from broker.domain.workloads.validation import find_workload_faults


@pytest.mark.parametrize("name", ["A", "HF_TOKEN", "X1", "A" * 100])
def test_a_name_like_an_environment_variable_is_valid(name: str) -> None:
    assert secret_name_fault(name) == ""


@pytest.mark.parametrize("name", ["", "hf_token", "1A", "_A", "A-B", "A\n", "Ä", "A" * 101])
def test_an_invalid_name_is_refused_without_repeating_it(name: str) -> None:
    fault = secret_name_fault(name)
    assert fault
    assert len(name) < 3 or name not in fault


def test_a_value_has_at_most_32_kib_of_utf8() -> None:
    assert secret_value_fault("x" * MAX_VALUE_BYTES) == ""
    assert "the maximum is 32,768" in secret_value_fault("ä" * (MAX_VALUE_BYTES // 2 + 1))


@pytest.mark.parametrize("value", ["", "a\0b", "\ud800"])
def test_a_value_that_no_variable_can_hold_is_refused(value: str) -> None:
    assert secret_value_fault(value)


def test_a_secret_does_not_show_its_value_as_text() -> None:
    assert "hf_123" not in repr(SecretVariable("HF_TOKEN", "sec_1", 1, "hf_123"))


@pytest.mark.parametrize(
    ("template", "name", "words"),
    [
        ("batch", "NVIDIA_VISIBLE_DEVICES", "cannot be set"),
        ("batch", "GPUBROKER_RANK", "cannot be set"),
        ("batch", "1A", "not a valid variable name"),
        ("batch", "MODE", "both as a plain variable and from a secret"),
        ("vllm", "VLLM_API_KEY", "own access token"),
    ],
)
def test_a_secret_cannot_set_a_reserved_or_doubled_variable(template: str, name: str, words: str) -> None:
    workload = Workload(template, env=(("MODE", "train"),), secrets=(SecretVariable(name),))
    (fault,) = find_workload_faults(workload)
    assert fault.field == "secrets"
    assert words in fault.text


def test_a_secret_replaces_a_templates_own_variable() -> None:
    program = build_program(Workload("vllm", secrets=(SecretVariable("HF_HOME", "sec_1", 1, "x"),)))
    assert "HF_HOME" not in dict(program.env)
    assert [each.name for each in program.secrets] == ["HF_HOME"]
