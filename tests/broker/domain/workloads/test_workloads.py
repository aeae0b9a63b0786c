"""Workload templates and the programs built from them."""

import pytest

from broker.domain.workloads.templates import (
    TEMPLATES,
    Workload,
    WorkloadShape,
    build_program,
    template_name_for,
)
from broker.domain.workloads.validation import find_workload_faults

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtMiVqXvOjvXcR8wHYL4fWGfIuB9pYvQKYsEY6nFTZ9 ada@example"


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_is_valid_without_further_settings(name: str) -> None:
    workload = Workload(name, image="" if TEMPLATES[name].image else "python:3", ssh_keys=(KEY,))
    assert find_workload_faults(workload) == ()
    assert build_program(workload).image


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_probes_one_of_its_open_ports(name: str) -> None:
    template = TEMPLATES[name]
    assert template.probe is None or template.probe.port in {port.number for port in template.ports}


def test_a_batch_command_runs_in_a_shell() -> None:
    found = build_program(Workload("batch", command="python a.py && ls"))
    assert found.command == ("/bin/sh", "-c", "python a.py && ls")
    assert found.template.shape is WorkloadShape.BATCH


def test_a_batch_without_a_command_runs_the_image_default() -> None:
    assert build_program(Workload("batch", image="acme/train:1")).command == ()


def test_commands_of_other_templates_are_appended_as_arguments() -> None:
    found = build_program(Workload("vllm", command="--model 'Qwen/Qwen3 8B'"))
    assert found.arguments[-2:] == ("--model", "Qwen/Qwen3 8B")
    assert found.arguments[0] == "--host"


def test_tenant_variables_override_those_of_the_template() -> None:
    found = build_program(Workload("vllm", env=(("HF_HOME", "/models"), ("A", "b"))))
    assert dict(found.env)["HF_HOME"] == "/models"
    assert [name for name, _ in found.env] == sorted(name for name, _ in found.env)


def test_ssh_keys_are_passed_only_to_ssh_workloads() -> None:
    assert build_program(Workload("jupyter", ssh_keys=(KEY,))).ssh_keys == ()
    assert build_program(Workload("ssh", ssh_keys=(KEY,))).ssh_keys == (KEY,)


def test_an_unknown_template_is_refused() -> None:
    with pytest.raises(ValueError, match="known templates: ssh, jupyter"):
        build_program(Workload("root-shell"))


@pytest.mark.parametrize(("image", "name"), [("", "ssh"), ("vllm/vllm-openai", "vllm"), ("python:3", "own")])
def test_the_template_is_derived_from_the_image(image: str, name: str) -> None:
    assert template_name_for(image) == name
