"""Validation of workloads: images, commands, variables and SSH keys."""

import base64
from dataclasses import replace

import pytest

from broker.domain.workloads.templates import Workload
from broker.domain.workloads.validation import WorkloadFault, find_workload_faults, ssh_key_fault

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtMiVqXvOjvXcR8wHYL4fWGfIuB9pYvQKYsEY6nFTZ9 ada@example"
FINE = Workload("ssh", "acme/box:1", "run --fast", (("MODE", "train"), ("EMPTY", "")), (KEY,))
RSA = base64.b64encode(b"\x00\x00\x00\x07ssh-rsa" + bytes(260)).decode()


def faults_of(**fields: object) -> tuple[WorkloadFault, ...]:
    return find_workload_faults(replace(FINE, **fields))  # type: ignore[arg-type]


def test_a_plain_workload_is_valid() -> None:
    assert faults_of() == ()


def test_an_unknown_workload_is_refused_with_the_known_ones() -> None:
    (fault,) = faults_of(template="root" * 100)
    assert fault.field == "workload"
    assert len(fault.text) < 100
    assert "jupyter" in fault.fix


@pytest.mark.parametrize("image", ["https://a/b", "169.254.169.254/latest/meta-data"])
def test_an_invalid_image_is_reported_with_its_field(image: str) -> None:
    (fault,) = faults_of(image=image)
    assert fault.field == "image"


def test_the_own_template_requires_an_image() -> None:
    (fault,) = faults_of(template="own", image="")
    assert (fault.field, fault.fix) == ("image", "Enter an image.")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("x" * 2001, "at most 2000"),
        ("echo \x1b[31m", "control characters"),
        ("echo \x00", "control characters"),
        ("echo 'open", "not closed"),
    ],
)
def test_a_command_that_cannot_be_read_is_refused(command: str, words: str) -> None:
    (fault,) = faults_of(command=command)
    assert fault.field == "command"
    assert words in fault.text


def test_a_batch_command_may_contain_any_shell_quoting() -> None:
    assert faults_of(template="batch", command="cat <<'E'\nit's\nE") == ()


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA_VISIBLE_DEVICES",
        "nvidia_visible_devices",
        "NVIDIA_DRIVER_CAPABILITIES",
        "NVIDIA_MIG_CONFIG_DEVICES",
        "CUDA_DEVICE_MEMORY_LIMIT_0",
        "CUDA_DISABLE_CONTROL",
        "CUDA_MPS_PIPE_DIRECTORY",
        "LD_PRELOAD",
        "LD_AUDIT",
        "KUBERNETES_SERVICE_HOST",
        "GPUBROKER_RANK",
    ],
)
def test_reserved_variables_cannot_be_set(name: str) -> None:
    (fault,) = faults_of(env=((name, "all"),))
    assert fault.field == "env"
    assert "cannot be set" in fault.text


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A\n", "Ä", "A" * 129])
def test_an_invalid_variable_name_is_refused(name: str) -> None:
    (fault,) = faults_of(env=((name, "x"),))
    assert "not a valid variable name" in fault.text


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ((("A", "x" * 8193),), "maximum is 8192"),
        ((("A", "\x00"),), "control characters"),
        ((("A", "a\rb"),), "control characters"),
        ((("A", "1"), ("A", "2")), "set twice"),
        (tuple((f"V{n}", "x") for n in range(1000)), "1000 variables"),
        (tuple((f"V{n}", "x" * 8000) for n in range(5)), "together"),
    ],
)
def test_too_many_long_or_invalid_variables_are_refused(env: tuple[tuple[str, str], ...], words: str) -> None:
    (fault,) = faults_of(env=env)
    assert words in fault.text


def test_a_variable_value_may_have_several_lines() -> None:
    assert faults_of(env=(("CONFIG", "a: 1\n\tb: 2\n"),)) == ()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
        (KEY + "\n" + KEY, "one line"),
        (KEY + "\x07", "one line"),
        ("ssh-ed25519 " + "A" * 9000, "one line"),
        ('command="/bin/sh" ' + KEY, "must start with one of"),
        ("ssh-dss AAAA", "must start with one of"),
        ("ssh-ed25519", "must start with one of"),
        ("", "must start with one of"),
        ("ssh-ed25519 AAAA!", "damaged"),
        ("ssh-ed25519 AA==", "does not match its prefix"),
        (f"ssh-ed25519 {RSA}", "does not match its prefix"),
    ],
)
def test_only_public_ssh_keys_are_accepted(key: str, words: str) -> None:
    assert words in ssh_key_fault(key)
    assert [fault.field for fault in faults_of(ssh_keys=(key,))] == ["ssh_keys"]


def test_an_rsa_key_is_accepted() -> None:
    assert ssh_key_fault(f"ssh-rsa {RSA}") == ""


def test_an_ssh_workload_requires_a_public_key() -> None:
    (fault,) = faults_of(ssh_keys=())
    assert "at least one public SSH key" in fault.text
    assert find_workload_faults(Workload("jupyter")) == ()


def test_a_workload_has_at_most_twenty_ssh_keys() -> None:
    (fault,) = faults_of(ssh_keys=(KEY,) * 21)
    assert "maximum is 20" in fault.text


def test_all_faults_of_a_workload_are_reported_together() -> None:
    found = faults_of(image="a b", command="'", env=(("LD_PRELOAD", "x"), ("1", "y")), ssh_keys=("x",))
    assert [fault.field for fault in found] == ["image", "command", "env", "env", "ssh_keys"]
